using System.Runtime.CompilerServices;

namespace Stacks;

/// <summary>Continuations on the thread pool: an awaiting method continues below the method that it awaited.</summary>
internal static class Asynchronous
{
    private const string Inner = "Chain+<Inner>d__0::MoveNext", Middle = "Chain+<Middle>d__1::MoveNext", Outer = "Chain+<Outer>d__2::MoveNext";

    public static readonly Mode[] Modes =
    [
        new("async", Run, Inner + "*", Inner + ";Work::Burn*", Inner + ";...;" + Middle + "*", Inner + ";...;" + Middle + ";Work::Burn*",
            Inner + ";...;" + Middle + ";...;" + Outer + "*", Inner + ";...;" + Middle + ";...;" + Outer + ";Work::Burn*") { Comm = ".NET TP Worker" },
    ];

    // This thread only waits; threads of the pool do the work.
    private static void Run()
    {
        var all = new Task[2];
        while (!Program.Stop)
        {
            for (int i = 0; i < all.Length; i++)
                all[i] = Chain.Outer(i);
            Task.WaitAll(all);
        }
    }

    private static class Chain
    {
        private static async Task<long> Inner(long n)
        {
            for (int i = 0; i < 20; i++)
            {
                await Task.Yield();
                Trace.Enter("async");
                n += Work.Burn(n);
            }
            return n;
        }

        private static async Task<long> Middle(long n)
        {
            n = await Inner(n);
            for (int i = 0; i < 20; i++)
                n += Work.Burn(n);
            return n;
        }

        public static async Task<long> Outer(long n)
        {
            n = await Middle(n);
            for (int i = 0; i < 20; i++)
                n += Work.Burn(n);
            return n;
        }
    }
}
