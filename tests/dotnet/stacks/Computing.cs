using System.Runtime.CompilerServices;

namespace Stacks;

/// <summary>Plain methods: calls of libm, methods that are mostly prologue and epilogue, frameless methods, large frames, recursion,
/// and loops that on-stack replacement takes over.</summary>
internal static class Computing
{
    public static readonly Mode[] Modes =
    [
        new("sin", Sin.Middle, "Sin::Middle;Sin::Leaf*") { Leaves = ["Sin::Leaf libm"] },
        new("pow", Pow.Middle, "Pow::Middle;Pow::Leaf*") { Leaves = ["Pow::Leaf libm"] },
        new("tiny", Tiny.Loop, "Tiny::Loop;Tiny::Saves;Tiny::Saves2;Tiny::Saves3"),
        new("frameless", Frameless.Loop, "Frameless::Loop;Frameless::One;Frameless::Two;Frameless::Three"),
        new("framelessburn", FramelessBurn.Loop, "FramelessBurn::Loop;FramelessBurn::One;FramelessBurn::Two;Work::Burn*"),
        new("large", Large.Loop, "Large::Loop;Large::Take;Large::Struct;Work::Burn*"),
        new("deep", Deep.Loop, $"Deep::Loop;Deep::Down{{{Deep.Depth}}};Work::Burn*"),
        new("osr", Osr.Run, "Osr::Run;Osr::Hot;Osr::Step;Work::Burn*"),
        new("osrleaf", OsrLeaf.Run, "OsrLeaf::Run;OsrLeaf::Hot"),
    ];

    private static class Sin
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Middle() => Work.Keep((long)(Leaf(0.1) + Leaf(0.2)));

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static double Leaf(double from)
        {
            for (int i = 0; i < 1000; i++)
                from += Math.Sin(from + i);
            return from;
        }
    }

    private static class Pow
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Middle() => Work.Keep((long)(Leaf(1.1) + Leaf(1.2)));

        // No loop: tail-call optimisation easily removes a small method.
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static double Leaf(double from) => Math.Pow(from, 0.3) + Math.Log(from) + Math.Exp(from);
    }

    private static class Tiny
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Loop()
        {
            long sum = 3;
            for (int i = 0; i < 10000; i++)
                sum += Saves(sum, i, 2, 3, 4, 5);
            Work.Keep(sum);
        }

        // All arguments live across the calls, so each method saves and restores every callee-saved register.
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Saves(long a, long b, long c, long d, long e, long f) => Saves2(a, b, c, d, e, f) + a + b + c + d + e + f;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Saves2(long a, long b, long c, long d, long e, long f) => (Saves3(b, a) ^ a) + Saves3(c, d) + a + b + c + d + e + f;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Saves3(long a, long b) => a ^ b;
    }

    private static class Frameless
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Loop()
        {
            long sum = 3;
            for (int i = 0; i < 10000; i++)
                sum += One(sum);
            Work.Keep(sum);
        }

        // One call and no loop, so the compiler uses no frame pointer.
        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long One(long a) => Two(a + 1) * 3 + a;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Two(long a) => Three(a * 5) + 7;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Three(long a) => (a * 31 + 5) / (a | 1);
    }

    private static class FramelessBurn
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Loop()
        {
            long sum = 3;
            for (int i = 0; i < 100; i++)
                sum += One(sum);
            Work.Keep(sum);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long One(long a) => Two(a + 1) * 3 + a;

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Two(long a) => Work.Burn(a * 5) + 7;
    }

    private static unsafe class Large
    {
        private struct Block
        {
            public fixed long All[700]; // 5,600 bytes
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Loop()
        {
            long sum = 3;
            for (int i = 0; i < 100; i++)
                sum += Take((int)(sum & 15));
            Work.Keep(sum);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Take(int n)
        {
            byte* space = stackalloc byte[9000 + n];
            space[n] = 1;
            return Struct(n) + space[0];
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Struct(int n)
        {
            Block block;
            block.All[n] = n;
            return Work.Burn(block.All[n]) + block.All[n + 1 - 1];
        }
    }

    private static class Deep
    {
        public const int Depth = 100;

        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Loop()
        {
            for (int i = 0; i < 10; i++)
                Work.Keep(Down(Depth, i));
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Down(int depth, long from)
        {
            if (depth > 1)
                return Down(depth - 1, from + depth) + depth;
            long sum = 0;
            for (int i = 0; i < 10; i++)
                sum += Work.Burn(from + i);
            return sum;
        }
    }

    // Both are called once and end only with the program, so they stay in the lowest tier until on-stack replacement.
    private static class Osr
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Run() => Hot(Environment.ProcessorCount);

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static void Hot(long sum)
        {
            while (!Program.Stop)
                sum = Step(sum) + sum % 7;
            Work.Keep(sum);
        }

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Step(long from) => Work.Burn(from) + Work.Burn(from + 1);
    }

    private static class OsrLeaf
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static void Run() => Work.Keep(Hot(3));

        [MethodImpl(MethodImplOptions.NoInlining)]
        private static long Hot(long sum)
        {
            while (!Program.Stop)
                sum = sum * 31 + (sum >> 5) % 7;
            return sum;
        }
    }
}
