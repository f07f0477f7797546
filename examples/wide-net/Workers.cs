using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace WideNet;

/// <summary>One kind of work. Its method is never inlined, so its frame is the caller of all its work in every tier.</summary>
internal sealed class Phase(Func<int, long> work)
{
    public Func<int, long> Work { get; } = work;
    public string Name { get; } = $"{work.Method.DeclaringType!.FullName}.{work.Method.Name}";
    public long CpuNanoseconds;
    public long Rounds;
    public long Result;
}

/// <summary>Threads repeat all phases in short slices, so shares are the same in any window of seconds.</summary>
internal static class Workers
{
    private const long SliceNanoseconds = 4_000_000;
    private const int ClockThreadCpuTime = 3;

    private struct TimeSpec
    {
        public long Seconds;
        public long Nanoseconds;
    }

    [DllImport("libc", EntryPoint = "clock_gettime")]
    private static extern int ClockGetTime(int clock, out TimeSpec time);

    public static long ThreadCpuNanoseconds()
    {
        ClockGetTime(ClockThreadCpuTime, out TimeSpec t);
        return t.Seconds * 1_000_000_000 + t.Nanoseconds;
    }

    public static void Run(Phase[] phases, ManyMethods? many, int count, TimeSpan time)
    {
        var threads = new Thread[count];
        DateTime end = DateTime.UtcNow + time;
        for (int i = 0; i < count; i++)
        {
            int first = i * phases.Length / count;
            threads[i] = new Thread(() => RunThread(phases, first, many, end)) { Name = $"wide-{i}" };
            threads[i].Start();
        }
        foreach (Thread t in threads)
            t.Join();
    }

    private static void RunThread(Phase[] phases, int first, ManyMethods? many, DateTime end)
    {
        for (int i = first; DateTime.UtcNow < end; i++)
        {
            RunSlice(phases[i % phases.Length], i);
            many?.Call(i);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void RunSlice(Phase phase, int seed)
    {
        long start = ThreadCpuNanoseconds(), now;
        long result = 0, rounds = 0;
        do
        {
            result += phase.Work(seed);
            rounds++;
            now = ThreadCpuNanoseconds();
        } while (now - start < SliceNanoseconds);
        Interlocked.Add(ref phase.CpuNanoseconds, now - start);
        Interlocked.Add(ref phase.Rounds, rounds);
        Interlocked.Add(ref phase.Result, result);
    }

    public static void Print(Phase[] phases)
    {
        double all = Math.Max(1, phases.Sum(phase => phase.CpuNanoseconds));

        foreach (Phase phase in phases)
            Console.WriteLine($"phase {phase.Name} {phase.CpuNanoseconds / 1e6:F1} ms of CPU, " +
                              $"{100 * phase.CpuNanoseconds / all:F2} %, {phase.Rounds} rounds");
        Console.WriteLine($"all {all / 1e6:F1} ms of CPU");
    }
}
