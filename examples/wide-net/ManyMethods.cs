using System.Diagnostics;
using System.Reflection;
using System.Reflection.Emit;

namespace WideNet;

/// <summary>Many small compiled methods, as in a big service after some days.</summary>
internal sealed class ManyMethods
{
    private const int PerType = 500;
    private readonly List<Func<int, long>> types = [];

    public int Count { get; private set; }
    public double MakeSeconds { get; private set; }

    public static ManyMethods Make(int count)
    {
        var many = new ManyMethods();
        long start = Stopwatch.GetTimestamp();
        ModuleBuilder module = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Many"), AssemblyBuilderAccess.Run).DefineDynamicModule("Many");

        for (int type = 0; many.Count < count; type++)
            many.AddType(module, type, Math.Min(PerType, count - many.Count));
        many.MakeSeconds = Stopwatch.GetElapsedTime(start).TotalSeconds;
        return many;
    }

    /// <summary>One type at a time, so that its methods change tiers while those of others are not yet hot.</summary>
    public void Call(int i) => types[i / 64 % types.Count](i);

    private void AddType(ModuleBuilder module, int number, int methods)
    {
        TypeBuilder type = module.DefineType($"Many.Type{number}", TypeAttributes.Public | TypeAttributes.Abstract | TypeAttributes.Sealed);
        var made = new MethodBuilder[methods];
        for (int i = 0; i < methods; i++)
        {
            made[i] = Define(type, $"Method{number}_{i}");
            ILGenerator il = made[i].GetILGenerator();
            il.Emit(OpCodes.Ldarg_0);
            il.Emit(OpCodes.Ldc_I4, i);
            il.Emit(OpCodes.Xor);
            il.Emit(OpCodes.Conv_I8);
            il.Emit(OpCodes.Ret);
        }
        MethodBuilder all = Define(type, $"CallAll{number}");
        ILGenerator calls = all.GetILGenerator();
        calls.Emit(OpCodes.Ldc_I4_0);
        calls.Emit(OpCodes.Conv_I8);
        foreach (MethodBuilder method in made)
        {
            calls.Emit(OpCodes.Ldarg_0);
            calls.Emit(OpCodes.Call, method);
            calls.Emit(OpCodes.Add);
        }
        calls.Emit(OpCodes.Ret);
        var call = type.CreateType().GetMethod($"CallAll{number}")!.CreateDelegate<Func<int, long>>();
        call(0); // compiles them all
        types.Add(call);
        Count += methods;
    }

    private static MethodBuilder Define(TypeBuilder type, string name)
    {
        MethodBuilder method = type.DefineMethod(name, MethodAttributes.Public | MethodAttributes.Static, typeof(long), [typeof(int)]);
        method.SetImplementationFlags(MethodImplAttributes.NoInlining);
        return method;
    }
}
