using System.Linq.Expressions;
using System.Reflection;
using System.Reflection.Emit;
using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;
using System.Runtime.CompilerServices;
using System.Runtime.Loader;

namespace WideNet;

/// <summary>The common body of all code made at run time: a loop with the same cost for each maker.</summary>
internal static class Body
{
    public const int Rounds = 20_000;

    /// <summary>long (int seed): sum = seed; for i in 0..Rounds: sum = sum * 31 + i; return sum</summary>
    public static void Write(ILGenerator il)
    {
        System.Reflection.Emit.Label test = il.DefineLabel(), loop = il.DefineLabel();
        il.DeclareLocal(typeof(long));
        il.DeclareLocal(typeof(int));
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Conv_I8);
        il.Emit(OpCodes.Stloc_0);
        il.Emit(OpCodes.Br, test);
        il.MarkLabel(loop);
        il.Emit(OpCodes.Ldloc_0);
        il.Emit(OpCodes.Ldc_I4, 31);
        il.Emit(OpCodes.Conv_I8);
        il.Emit(OpCodes.Mul);
        il.Emit(OpCodes.Ldloc_1);
        il.Emit(OpCodes.Conv_I8);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Stloc_0);
        il.Emit(OpCodes.Ldloc_1);
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Add);
        il.Emit(OpCodes.Stloc_1);
        il.MarkLabel(test);
        il.Emit(OpCodes.Ldloc_1);
        il.Emit(OpCodes.Ldc_I4, Rounds);
        il.Emit(OpCodes.Blt, loop);
        il.Emit(OpCodes.Ldloc_0);
        il.Emit(OpCodes.Ret);
    }

    /// <summary>The same for System.Reflection.Metadata's encoder.</summary>
    public static void Write(InstructionEncoder il)
    {
        LabelHandle test = il.DefineLabel(), loop = il.DefineLabel();
        il.LoadArgument(0);
        il.OpCode(ILOpCode.Conv_i8);
        il.StoreLocal(0);
        il.Branch(ILOpCode.Br, test);
        il.MarkLabel(loop);
        il.LoadLocal(0);
        il.LoadConstantI4(31);
        il.OpCode(ILOpCode.Conv_i8);
        il.OpCode(ILOpCode.Mul);
        il.LoadLocal(1);
        il.OpCode(ILOpCode.Conv_i8);
        il.OpCode(ILOpCode.Add);
        il.StoreLocal(0);
        il.LoadLocal(1);
        il.LoadConstantI4(1);
        il.OpCode(ILOpCode.Add);
        il.StoreLocal(1);
        il.MarkLabel(test);
        il.LoadLocal(1);
        il.LoadConstantI4(Rounds);
        il.Branch(ILOpCode.Blt, loop);
        il.LoadLocal(0);
        il.OpCode(ILOpCode.Ret);
    }
}

internal static class DynamicPhases
{
    private static int made;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long DynamicMethods(int seed)
    {
        int n = Interlocked.Increment(ref made);
        var method = new DynamicMethod($"Dynamic{n % 1000}", typeof(long), [typeof(int)], typeof(DynamicPhases).Module);
        Body.Write(method.GetILGenerator());
        var call = method.CreateDelegate<Func<int, long>>();
        return call(seed) ^ call(seed + 1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long ExpressionTrees(int seed)
    {
        ParameterExpression from = Expression.Parameter(typeof(int), "from");
        ParameterExpression sum = Expression.Variable(typeof(long), "sum"), i = Expression.Variable(typeof(int), "i");
        LabelTarget done = Expression.Label(typeof(long));
        BlockExpression body = Expression.Block([sum, i],
            Expression.Assign(sum, Expression.Convert(from, typeof(long))),
            Expression.Loop(Expression.IfThenElse(Expression.LessThan(i, Expression.Constant(Body.Rounds)),
                Expression.Block(
                    Expression.Assign(sum, Expression.Add(Expression.Multiply(sum, Expression.Constant(31L)), Expression.Convert(i, typeof(long)))),
                    Expression.PreIncrementAssign(i)),
                Expression.Break(done, sum)), done));
        return Expression.Lambda<Func<int, long>>(body, $"Tree{seed % 100}", [from]).Compile()(seed);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Binder(int seed)
    {
        dynamic sum = seed;
        for (int i = 0; i < 50; i++)
        {
            dynamic step = i % 3 == 0 ? i : i % 3 == 1 ? (double)i : $"{i}";
            sum = i % 3 == 2 ? sum + step.Length : sum + step;
        }
        return (long)sum;
    }
}

internal static class EmitPhases
{
    private const int MethodsPerType = 4;
    private static int made;
    private static readonly Func<int, long>[] Kept = new Func<int, long>[16];

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Run(int seed)
    {
        // Assemblies of AssemblyBuilderAccess.Run are never freed, so a fixed number is made and called for ever.
        ref Func<int, long> kept = ref Kept[seed & 15];
        kept ??= Make(AssemblyBuilderAccess.Run, seed & 15);
        return kept(seed);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long RunAndCollect(int seed) => Make(AssemblyBuilderAccess.RunAndCollect, Interlocked.Increment(ref made) % 1000)(seed);

    private static Func<int, long> Make(AssemblyBuilderAccess access, int n)
    {
        string kind = access == AssemblyBuilderAccess.Run ? "Emitted" : "Collected";
        TypeBuilder type = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName($"{kind}{n}"), access)
            .DefineDynamicModule($"{kind}{n}").DefineType($"{kind}.Type{n}", TypeAttributes.Public);
        for (int i = 0; i < MethodsPerType; i++)
            Body.Write(type.DefineMethod($"Method{n}_{i}", MethodAttributes.Public | MethodAttributes.Static, typeof(long), [typeof(int)])
                .GetILGenerator());
        Type made = type.CreateType();
        var calls = Enumerable.Range(0, MethodsPerType).Select(i => made.GetMethod($"Method{n}_{i}")!.CreateDelegate<Func<int, long>>()).ToArray();
        return seed => calls.Aggregate(0L, (sum, call) => sum ^ call(seed));
    }
}

/// <summary>Assemblies that are loaded and unloaded, with different names each, so that other methods reuse addresses.</summary>
internal static class CollectiblePhases
{
    private const int Names = 32;
    private static int loaded;
    private static readonly byte[]?[] Images = new byte[Names][];

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long LoadContexts(int seed)
    {
        int n = Interlocked.Increment(ref loaded);
        long sum = LoadAndCall(n % Names, seed);
        if (n % 64 == 0)
            GC.Collect();
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long LoadAndCall(int n, int seed)
    {
        var context = new AssemblyLoadContext($"plugin {n}", isCollectible: true);
        using var image = new MemoryStream(Images[n] ??= MakeImage(n));
        Type type = context.LoadFromStream(image).GetType($"Plugins.Plugin{n}", throwOnError: true)!;
        long sum = type.GetMethod($"Work{n}")!.CreateDelegate<Func<int, long>>()(seed);
        context.Unload();
        return sum;
    }

    /// <summary>A DLL with one type Plugins.PluginN and one method WorkN, made here so that a single-file publish has it too.</summary>
    private static byte[] MakeImage(int n)
    {
        var metadata = new MetadataBuilder();
        var code = new BlobBuilder();
        AssemblyName core = typeof(object).Assembly.GetName();
        metadata.AddModule(0, metadata.GetOrAddString($"Plugin{n}.dll"), metadata.GetOrAddGuid(Guid.NewGuid()), default, default);
        metadata.AddAssembly(metadata.GetOrAddString($"Plugin{n}"), new Version(1, 0), default, default, 0, AssemblyHashAlgorithm.None);
        AssemblyReferenceHandle coreRef = metadata.AddAssemblyReference(metadata.GetOrAddString(core.Name!), core.Version!, default,
            metadata.GetOrAddBlob(core.GetPublicKeyToken()!), 0, default);
        TypeReferenceHandle obj = metadata.AddTypeReference(coreRef, metadata.GetOrAddString("System"), metadata.GetOrAddString("Object"));

        var signature = new BlobBuilder();
        new BlobEncoder(signature).MethodSignature().Parameters(1, r => r.Type().Int64(), p => p.AddParameter().Type().Int32());
        var locals = new BlobBuilder();
        LocalVariablesEncoder variables = new BlobEncoder(locals).LocalVariableSignature(2);
        variables.AddVariable().Type().Int64();
        variables.AddVariable().Type().Int32();
        var il = new InstructionEncoder(new BlobBuilder(), new ControlFlowBuilder());
        Body.Write(il);
        int offset = new MethodBodyStreamEncoder(code).AddMethodBody(il,
            localVariablesSignature: metadata.AddStandaloneSignature(metadata.GetOrAddBlob(locals)));

        metadata.AddTypeDefinition(0, default, metadata.GetOrAddString("<Module>"), default, MetadataTokens.FieldDefinitionHandle(1),
            MetadataTokens.MethodDefinitionHandle(1));
        metadata.AddMethodDefinition(MethodAttributes.Public | MethodAttributes.Static, MethodImplAttributes.IL,
            metadata.GetOrAddString($"Work{n}"), metadata.GetOrAddBlob(signature), offset, MetadataTokens.ParameterHandle(1));
        metadata.AddTypeDefinition(TypeAttributes.Public, metadata.GetOrAddString("Plugins"), metadata.GetOrAddString($"Plugin{n}"), obj,
            MetadataTokens.FieldDefinitionHandle(1), MetadataTokens.MethodDefinitionHandle(1));
        var image = new BlobBuilder();
        new ManagedPEBuilder(PEHeaderBuilder.CreateLibraryHeader(), new MetadataRootBuilder(metadata), code).Serialize(image);
        return image.ToArray();
    }
}

internal static class TieringPhases
{
    private struct Wrap<T>
    {
#pragma warning disable CS0649 // it has a size, but its value is never set
        public T? Inner;
#pragma warning restore CS0649
    }

    private static Type deepest = typeof(int);
    private static Func<int, long> late = MakeLate();
    private static int calls;

    private static class Instance<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Warm(int n)
        {
            long sum = Unsafe.SizeOf<T>();
            for (int i = 0; i < 100; i++)
                sum += sum % 11 + n;
            return sum;
        }

        // Called once for each T, so that only on-stack replacement can make it fast.
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Long(int n)
        {
            long sum = Unsafe.SizeOf<T>();
            for (int i = 0; i < 400_000; i++)
                sum = sum * 31 + (i ^ n);
            return sum;
        }
    }

    private static Func<int, long> MakeLate() => Next().GetMethod(nameof(Instance<int>.Warm))!.CreateDelegate<Func<int, long>>();

    // Value types share no code: each instantiation is a method of its own that begins in the lowest tier.
    private static Type Next()
    {
        lock (typeof(TieringPhases))
        {
            deepest = Depth(deepest) >= 30 ? typeof(Wrap<>).MakeGenericType(Fresh()) : typeof(Wrap<>).MakeGenericType(deepest);
            return typeof(Instance<>).MakeGenericType(deepest);
        }
    }

    private static readonly Type[] Seeds =
        [typeof(byte), typeof(short), typeof(long), typeof(float), typeof(double), typeof(char), typeof(Guid), typeof(DateTime), typeof(decimal)];
    private static int seeds;

    private static Type Fresh() => typeof(KeyValuePair<,>).MakeGenericType(Seeds[seeds % Seeds.Length], Seeds[seeds++ / Seeds.Length % Seeds.Length]);

    private static int Depth(Type type) =>
        type.IsGenericType && type.GetGenericTypeDefinition() == typeof(Wrap<>) ? 1 + Depth(type.GetGenericArguments()[0]) : 0;

    /// <summary>Every 20,000 calls another method becomes the hot one and passes through the tiers.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long LateHot(int seed)
    {
        if (Interlocked.Increment(ref calls) % 20_000 == 0)
            late = MakeLate();
        return late(seed);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long OnStackReplacement(int seed) =>
        Next().GetMethod(nameof(Instance<int>.Long))!.CreateDelegate<Func<int, long>>()(seed);
}
