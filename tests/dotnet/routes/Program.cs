// Threads that run and threads that wait, as requests of two routes do. Each notes the CPU time that it has used.
// usage: routes SECONDS RUNNING WAITING: so many threads in Routes.Cpu and in Routes.Wait. Prints "working pid PID", then, for each
// turn of a thread, "ROUTE TID MONOTONIC_NS CPU_NS"; a turn takes about 100 ms.
using System.Diagnostics;
using System.Globalization;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;

internal static class Program
{
    private static int Main(string[] args)
    {
        double seconds = double.Parse(args[0], CultureInfo.InvariantCulture);
        var threads = new List<Thread>();

        Clock.End = Clock.Now(Clock.Monotonic) + (long)(seconds * 1e9);
        for (int i = 0; i < int.Parse(args[1]); i++)
            threads.Add(new Thread(Routes.CpuThread) { Name = "cpu" });
        for (int i = 0; i < int.Parse(args[2]); i++)
            threads.Add(new Thread(Routes.WaitThread) { Name = "wait" });
        foreach (Thread thread in threads)
            thread.Start();
        Console.WriteLine($"working pid {Environment.ProcessId}");
        foreach (Thread thread in threads)
            thread.Join();
        return 0;
    }
}

internal static class Routes
{
    public static void CpuThread()
    {
        var log = new Log("cpu");
        while (log.Note())
            Cpu();
        log.Print();
    }

    public static void WaitThread()
    {
        var log = new Log("wait");
        while (log.Note())
            Wait();
        log.Print();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static double Cpu()
    {
        long end = Clock.Now(Clock.ThreadCpu) + 100_000_000;
        double sum = 0;

        while (Clock.Now(Clock.ThreadCpu) < end && Clock.Now(Clock.Monotonic) < Clock.End)
            sum += Burn();
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static double Burn()
    {
        double sum = 0;
        for (int i = 0; i < 20000; i++)
            sum += i * 0.5;
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Wait() => Task.Delay(100).Wait();
}

internal sealed class Log(string route)
{
    private readonly StringBuilder _text = new();
    private readonly int _tid = Clock.Tid();

    /// <summary>Notes the time; false when the program must end.</summary>
    public bool Note()
    {
        long now = Clock.Now(Clock.Monotonic);

        _text.Append(CultureInfo.InvariantCulture, $"{route} {_tid} {now} {Clock.Now(Clock.ThreadCpu)}\n");
        return now < Clock.End;
    }

    public void Print()
    {
        lock (Console.Out)
            Console.Write(_text.ToString());
    }
}

internal static class Clock
{
    public const int Monotonic = 1, ThreadCpu = 3;
    public static long End;

    private struct TimeSpec
    {
        public long Seconds, Nanoseconds;
    }

    [DllImport("libc", EntryPoint = "clock_gettime")]
    private static extern int ClockGetTime(int clock, out TimeSpec time);

    [DllImport("libc", EntryPoint = "gettid")]
    public static extern int Tid();

    public static long Now(int clock)
    {
        ClockGetTime(clock, out TimeSpec t);
        return t.Seconds * 1_000_000_000 + t.Nanoseconds;
    }
}
