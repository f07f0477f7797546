// Does known numbers of things that event profiles count, once the file GO exists.
// usage: managed GO MODE...: exceptions, alloc, contention, gc, jit, and none, which only waits. Prints "working pid PID"; for each
// mode a line of numbers, as the methods below say; then "done", and sleeps until a signal ends it.
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

internal static class Program
{
    private static int Main(string[] args)
    {
        Live.Grow();
        Console.WriteLine($"working pid {Environment.ProcessId}");
        while (!File.Exists(args[0]))
            Thread.Sleep(20);
        foreach (string mode in args.Skip(1))
        {
            switch (mode)
            {
                case "exceptions": Catcher.Run(); break;
                case "alloc": Allocator.Run(); break;
                case "contention": Locks.Run(); break;
                case "gc": Collector.Run(); break;
                case "jit": Compiler.Run(); break;
            }
        }
        Console.WriteLine("done");
        Thread.Sleep(Timeout.Infinite);
        return 0;
    }
}

internal sealed class BrokenException(string message) : Exception(message);

/// <summary>500, 300 and 200 exceptions of three types. Prints "exceptions CAUGHT".</summary>
internal static class Catcher
{
    public static void Run()
    {
        int caught = 0;

        for (int i = 0; i < 1000; i++)
        {
            try
            {
                if (i % 10 < 5)
                    Thrower.Invalid();
                else if (i % 10 < 8)
                    Thrower.Format();
                else
                    Thrower.Broken();
            }
            catch (Exception)
            {
                caught++;
            }
        }
        Console.WriteLine($"exceptions {caught}");
    }
}

internal static class Thrower
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Invalid() => throw new InvalidOperationException("invalid");

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Format() => throw new FormatException("format");

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Broken() => throw new BrokenException("broken");
}

/// <summary>An object of 64 bytes.</summary>
internal sealed class Small
{
    public long A, B, C, D, E, F;
}

/// <summary>About 448 MB of each of three types. Prints "alloc TYPE BYTES" for each.</summary>
internal static class Allocator
{
    private const int Smalls = 7_000_000, Bytes = 437_500, Doubles = 2_800;
    private static object? s_last;

    public static void Run()
    {
        for (int part = 0; part < 25; part++)
        {
            AllocateSmall();
            AllocateBytes();
            AllocateDoubles();
        }
        Console.WriteLine($"alloc Small {64L * Smalls}");
        Console.WriteLine($"alloc System.Byte[] {1024L * Bytes}");
        Console.WriteLine($"alloc System.Double[] {160_024L * Doubles}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void AllocateSmall()
    {
        for (int i = 0; i < Smalls / 25; i++)
            s_last = new Small();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void AllocateBytes()
    {
        for (int i = 0; i < Bytes / 25; i++)
            s_last = new byte[1000];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void AllocateDoubles()
    {
        for (int i = 0; i < Doubles / 25; i++)
            s_last = new double[20_000];
    }
}

/// <summary>
/// One thread holds a lock 40 times for at least 5 ms while another one waits for it. Prints
/// "contention WAITING-METHOD NS OWNER-TID": the time that the waiter measured.
/// </summary>
internal static class Locks
{
    private const int Rounds = 40;
    private static readonly object s_monitor = new();
#if NET9_0_OR_GREATER
    private static readonly Lock s_lock = new();
#endif
    private static long s_ticks;

    // Each side: enters the lock, calls what it is given, and leaves the lock.
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void EnterMonitor(Action inside)
    {
        lock (s_monitor)
            inside();
    }

#if NET9_0_OR_GREATER
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void EnterLock(Action inside)
    {
        lock (s_lock)
            inside();
    }
#endif

    public static void Run()
    {
        Measure("EnterMonitor", EnterMonitor);
#if NET9_0_OR_GREATER
        Measure("EnterLock", EnterLock);
#endif
    }

    private static void Measure(string name, Action<Action> enter)
    {
        // Waiting for these needs no lock of the runtime.
        using var held = new AutoResetEvent(false);
        using var free = new AutoResetEvent(false);
        int owner = 0;
        var waiter = new Thread(() =>
        {
            for (int i = 0; i < Rounds; i++)
            {
                held.WaitOne();
                long begin = Stopwatch.GetTimestamp();
                enter(() => s_ticks += Stopwatch.GetTimestamp() - begin);
                free.Set();
            }
        }) { Name = "waiter" };
        var holder = new Thread(() =>
        {
            owner = Native.Tid();
            for (int i = 0; i < Rounds; i++)
            {
                enter(() =>
                {
                    held.Set();
                    Thread.Sleep(10);
                });
                free.WaitOne();
            }
        }) { Name = "holder" };

        s_ticks = 0;
        waiter.Start();
        holder.Start();
        waiter.Join();
        holder.Join();
        Console.WriteLine($"contention {name} {(long)(s_ticks * 1e9 / Stopwatch.Frequency)} {owner}");
    }
}

/// <summary>Objects that stay, so that collections take a time that can be measured.</summary>
internal static class Live
{
    private static object[] s_objects = [];

    public static void Grow()
    {
        s_objects = new object[400_000];
        for (int i = 0; i < s_objects.Length; i++)
            s_objects[i] = new object[] { i };
    }
}

/// <summary>Ten forced collections of each generation. Prints "gc GENERATION COUNT PAUSE_NS" for each generation.</summary>
internal static class Collector
{
    public static void Run()
    {
        for (int generation = 0; generation < 3; generation++)
        {
            TimeSpan before = GC.GetTotalPauseDuration();

            for (int i = 0; i < 10; i++)
            {
                Collect(generation);
                Thread.Sleep(100);
            }
            TimeSpan pause = GC.GetTotalPauseDuration() - before;
            Console.WriteLine($"gc {generation} 10 {pause.Ticks * 100}");
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Collect(int generation) => GC.Collect(generation, GCCollectionMode.Forced, blocking: true);
}

internal struct S0 { public int A; }
internal struct S1 { public long A; }
internal struct S2 { public double A; }
internal struct S3 { public int A, B; }
internal struct S4 { public long A, B; }
internal struct S5 { public double A, B; }
internal struct S6 { public byte A; }
internal struct S7 { public short A; }

/// <summary>Code that the runtime must compile once for each pair of types.</summary>
internal static class Compiled<TA, TB> where TA : struct where TB : struct
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Work(int n)
    {
        int sum = 0;

        for (int i = 0; i < n; i++)
            sum += Unsafe.SizeOf<TA>() * i + Unsafe.SizeOf<TB>();
        return sum;
    }
}

/// <summary>Compiles 64 methods. Prints "jit METHODS".</summary>
internal static class Compiler
{
    public static void Run()
    {
        Type[] types = [typeof(S0), typeof(S1), typeof(S2), typeof(S3), typeof(S4), typeof(S5), typeof(S6), typeof(S7)];
        int methods = 0;

        foreach (Type a in types)
        {
            foreach (Type b in types)
            {
                typeof(Compiled<,>).MakeGenericType(a, b).GetMethod("Work")!.Invoke(null, [100]);
                methods++;
            }
        }
        Console.WriteLine($"jit {methods}");
    }
}

internal static class Native
{
    [DllImport("libc", EntryPoint = "gettid")]
    public static extern int Tid();
}
