using System.Reflection.Emit;
using System.Runtime.CompilerServices;

namespace Stacks;

/// <summary>Ways to call: generics, delegates, interfaces, dynamic methods.</summary>
internal static class Calls
{
    public static readonly Mode[] Modes =
    [
        new("generics", Generic.Middle, "Generic::Middle*;Shared`1::Outer;Shared`1::Inner;Shared`1::Deepest;Work::Burn*",
            "Generic::Middle*;Generic::Method*;Shared`1::Static;Work::Burn*"),
        new("delegates", Delegates.Middle, $"Delegates::Middle;...;{Delegates.Names};Work::Burn*"),
        new("dispatch", Dispatch.Loop, "Dispatch::Loop*;A::Get|B::Get|C::Get|D::Get"),
        new("dispatchburn", DispatchBurn.Loop, "DispatchBurn::Loop;...;A::Work|B::Work|C::Work|D::Work;Work::Burn*"),
        new("virtualgeneric", VirtualGeneric.Loop, "VirtualGeneric::Loop*",
            "VirtualGeneric::Loop;...;First::Generic|Second::Generic;Work::Burn*"),
        new("dynamic", Dynamic.Loop, "Dynamic::Loop;...;dynamicClass::Made;Work::Burn*"),
    ];

    private static class Generic
    {
        private unsafe struct Pair
        {
            public fixed long All[2];
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Middle() => Work.Keep(new Shared<string>().Outer(1) + new Shared<int[]>().Outer(1) + new Shared<int>().Outer(1) +
            new Shared<Pair>().Outer(1) + Method<string>(1) + Method<Pair>(1));

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Method<T>(long n) => Shared<List<T>>.Static(n) + Unsafe.SizeOf<T>();
    }

    private sealed class Shared<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public long Outer(long n) => Inner<T>(n) + 1;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private long Inner<U>(long n) => Deepest<(T, U)>(n) + Unsafe.SizeOf<U>();

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Deepest<V>(long n) => Work.Burn(n) + Unsafe.SizeOf<V>();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Static(long n) => Work.Burn(n) + Work.Burn(n + 1);
    }

    private static class Delegates
    {
        private static readonly int captured = Environment.ProcessorCount;
        private static readonly Func<long, long> ToStatic = Static, ToLambda = [MethodImpl(MethodImplOptions.NoInlining)] (n) => Work.Burn(n) + 1, ToClosure = Close(), ToInstance = new Target().Instance;
        private static readonly Func<long, long> Several = ToStatic + ToLambda + ToClosure + ToInstance;
        private static readonly Func<Target, long, long> Open = typeof(Target).GetMethod(nameof(Target.Instance))!.CreateDelegate<Func<Target, long, long>>();
        private static readonly Target Target1 = new();

        public static string Names => string.Join('|', Several.GetInvocationList().Select(one => Trace.NameOf(one.Method)));

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Middle() => Work.Keep(Several(1) + ToStatic(1) + ToLambda(1) + ToClosure(1) + ToInstance(1) + Open(Target1, 1));

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Static(long n) => Work.Burn(n) + 1;

        private static Func<long, long> Close()
        {
            long local = captured;
            return [MethodImpl(MethodImplOptions.NoInlining)] (n) => Work.Burn(n) + local;
        }

        private sealed class Target
        {
            [MethodImpl(MethodImplOptions.NoInlining)]
            public long Instance(long n) => Work.Burn(n) + 1;
        }
    }

    // More types than an inline cache holds, so that all kinds of stubs are used.
    private interface IGet
    {
        long Get(long n);
        long Work(long n);
    }

    private sealed class A : IGet
    {
        [MethodImpl(MethodImplOptions.NoInlining)] public long Get(long n) => n + 1;
        [MethodImpl(MethodImplOptions.NoInlining)] public long Work(long n) => Stacks.Work.Burn(n) + 1;
    }

    private sealed class B : IGet
    {
        [MethodImpl(MethodImplOptions.NoInlining)] public long Get(long n) => n + 2;
        [MethodImpl(MethodImplOptions.NoInlining)] public long Work(long n) => Stacks.Work.Burn(n) + 2;
    }

    private sealed class C : IGet
    {
        [MethodImpl(MethodImplOptions.NoInlining)] public long Get(long n) => n + 3;
        [MethodImpl(MethodImplOptions.NoInlining)] public long Work(long n) => Stacks.Work.Burn(n) + 3;
    }

    private sealed class D : IGet
    {
        [MethodImpl(MethodImplOptions.NoInlining)] public long Get(long n) => n + 4;
        [MethodImpl(MethodImplOptions.NoInlining)] public long Work(long n) => Stacks.Work.Burn(n) + 4;
    }

    private static readonly IGet[] Getters = [new A(), new B(), new C(), new D()];

    private static class Dispatch
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Loop()
        {
            long sum = 3;
            for (int i = 0; i < 10000; i++)
                sum += Getters[i & 3].Get(sum);
            Work.Keep(sum);
        }
    }

    private static class DispatchBurn
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Loop()
        {
            long sum = 3;
            for (int i = 0; i < 100; i++)
                sum += Getters[i & 3].Work(sum);
            Work.Keep(sum);
        }
    }

    private abstract class Base
    {
        public abstract long Generic<T>(long n);
    }

    private sealed class First : Base
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public override long Generic<T>(long n) => Work.Burn(n) + Unsafe.SizeOf<T>();
    }

    private sealed class Second : Base
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public override long Generic<T>(long n) => Work.Burn(n) + Unsafe.SizeOf<T>();
    }

    private static class VirtualGeneric
    {
        private static readonly Base[] All = [new First(), new Second()];

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Loop()
        {
            long sum = 3;
            for (int i = 0; i < 100; i++)
                sum += All[i & 1].Generic<string>(sum) + All[i & 1].Generic<int>(sum);
            Work.Keep(sum);
        }
    }

    private static class Dynamic
    {
        private static readonly Func<long, long> Made = Make();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Loop()
        {
            long sum = 3;
            for (int i = 0; i < 100; i++)
                sum += Made(sum);
            Work.Keep(sum);
        }

        private static Func<long, long> Make()
        {
            var method = new DynamicMethod("Made", typeof(long), [typeof(long)], typeof(Program).Module, skipVisibility: true);
            ILGenerator il = method.GetILGenerator();
            for (int i = 0; i < 2; i++)
            {
                il.Emit(OpCodes.Ldarg_0);
                il.Emit(OpCodes.Call, typeof(Work).GetMethod(nameof(Work.Burn))!);
            }
            il.Emit(OpCodes.Add);
            il.Emit(OpCodes.Ret);
            return method.CreateDelegate<Func<long, long>>();
        }
    }
}
