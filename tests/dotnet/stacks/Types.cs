using System.Runtime.CompilerServices;

namespace Stacks;

/// <summary>Runtime helpers called by compiled code: write barriers, allocation, casts, static constructors.</summary>
internal static class Types
{
    public static readonly Mode[] Modes =
    [
        new("barriers", Barriers.Middle, "Barriers::Middle*;Barriers::Store*") { Leaves = ["Barriers::Store JIT_WriteBarrier"] },
        new("elements", Elements.Middle, "Elements::Middle*;Elements::Store*"),
        new("byref", ByRef.Middle, "ByRef::Middle*;ByRef::Store*"),
        new("alloc", Alloc.Middle, "Alloc::Middle;Alloc::Make*"),
        new("casts", Casts.Middle, "Casts::Middle;Casts::Cast*"),
        new("statics", Statics.Run, "Statics::Run;Statics::Loop*", "Statics::Run;Statics::Loop;...;Touch`1::Now*",
            "Statics::Run;Statics::Loop;...;Touch`1::Now;...;Holder`1::.cctor*;Work::Burn*"),
    ];

    private sealed class Node
    {
        public Node? Next;
        public object? Value;
        public long N = 1;
    }

    private static class Barriers
    {
        private static readonly Node Old = new();

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Middle() => Work.Keep(Store(Old, new Node()) + 1);

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Store(Node to, Node young)
        {
            for (int i = 0; i < 2000; i++)
            {
                to.Next = young;
                to.Value = young;
                young.Next = to;
            }
            return to.N;
        }
    }

    // Stores into an array of references: a type check, then the barrier.
    private static class Elements
    {
        private static readonly object[] All = new object[16];

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Middle() => Work.Keep(Store(All, new Node()) + 1);

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Store(object[] to, object young)
        {
            for (int i = 0; i < 2000; i++)
                to[i & 15] = young;
            return to.Length;
        }
    }

    // A helper with a special calling convention copies a struct with references.
    private static class ByRef
    {
        private struct Three
        {
            public object? A, B, C;
            public long N;
        }

        private static readonly Three[] All = new Three[16];

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Middle() => Work.Keep(Store(All, new Node()) + 1);

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Store(Three[] to, Node young)
        {
            Three from = new() { A = young, B = to, C = young, N = 1 };
            for (int i = 0; i < 2000; i++)
                to[i & 15] = from;
            return to.Length;
        }
    }

    private static class Alloc
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Middle() => Work.Keep(Make(1) + 1);

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Make(int n)
        {
            object last = "";
            for (int i = 0; i < 100; i++)
                last = (i & 3) switch { 0 => new Node { Value = last }, 1 => new byte[n + 30], 2 => n, _ => new Node[n] };
            return last.GetHashCode() == 0 ? 0 : 1;
        }
    }

    private static class Casts
    {
        private static readonly object[] All = [new List<string>(), "text", new Node[1], new Dictionary<int, string>()];

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Middle() => Work.Keep(Cast() + Cast());

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Cast()
        {
            long n = 0;
            for (int i = 0; i < 500; i++)
            {
                object one = All[i & 3];
                n += one is IEnumerable<string> ? 1 : one is IReadOnlyDictionary<int, string> ? 2 : one is Array ? 3 : 4;
            }
            return n;
        }
    }

    private struct Wrap<T>
    {
#pragma warning disable CS0649 // it has a size, but its value is never set
        public T? Inner;
#pragma warning restore CS0649
    }

    private static class Holder<T>
    {
        public static readonly long Value;

        static Holder()
        {
            for (int i = 0; i < 3000; i++)
                Value += Work.Burn(i) + typeof(T).GetHashCode();
        }
    }

    private static class Touch<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static long Now() => Holder<T>.Value + 1;
    }

    // Each type argument has a static constructor of its own, which runs once.
    private static class Statics
    {
        private static readonly Type[] Seeds = [typeof(byte), typeof(short), typeof(long), typeof(float), typeof(double), typeof(string), typeof(Guid)];

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Run()
        {
            // Makes new code all the time.
            Program.Warm.Wait();
            foreach (Type seed in Seeds)
                Loop(seed);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Loop(Type type)
        {
            for (int i = 0; i < 20 && !Program.Stop; i++)
            {
                type = typeof(Wrap<>).MakeGenericType(type);
                Work.Keep(typeof(Touch<>).MakeGenericType(type).GetMethod(nameof(Touch<int>.Now))!.CreateDelegate<Func<long>>()());
            }
        }
    }
}
