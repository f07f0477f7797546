using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace WebApi;

/// <summary>
/// Work on the CPU, measured as the thread's CPU time, not as elapsed time. Nothing is inlined, so that every tier has the
/// same frames. libm's sin has no frame: it hides its caller SumOfSines, never Burn.
/// </summary>
internal static class Cpu
{
    private const double SecondsMax = 60;
    private const int ClockThreadCpuTime = 3;

    private struct TimeSpec
    {
        public long Seconds;
        public long Nanoseconds;
    }

    [DllImport("libc", EntryPoint = "clock_gettime")]
    private static extern int ClockGetTime(int clock, out TimeSpec time);

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static double ThreadCpuMilliseconds()
    {
        ClockGetTime(ClockThreadCpuTime, out TimeSpec t);
        return t.Seconds * 1e3 + t.Nanoseconds / 1e6;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static string Burn(double milliseconds)
    {
        double start = ThreadCpuMilliseconds();
        double end = start + milliseconds;
        double sum = 0;
        int rounds = 0;
        while (ThreadCpuMilliseconds() < end)
        {
            sum += rounds % 4 == 3 ? CountPrimes(6000) : SumOfSines(rounds, 10000);
            rounds++;
        }
        return $"{rounds} rounds in {ThreadCpuMilliseconds() - start:F1} ms of CPU, {sum:F3}\n";
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static double SumOfSines(int from, int count)
    {
        double sum = 0;
        for (int i = 0; i < count; i++)
            sum += Math.Sin(from + i * 0.001);
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static int CountPrimes(int below)
    {
        int count = 0;
        for (int n = 2; n < below; n++)
            if (IsPrime(n))
                count++;
        return count;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static bool IsPrime(int n)
    {
        for (int d = 2; d * d <= n; d++)
            if (n % d == 0)
                return false;
        return true;
    }

    public static string BurnAllCores(double seconds)
    {
        seconds = Math.Clamp(seconds, 0.1, SecondsMax);
        var threads = new Thread[Environment.ProcessorCount];
        for (int i = 0; i < threads.Length; i++)
        {
            threads[i] = new Thread(() => Burn(seconds * 1000)) { IsBackground = true, Name = $"high-cpu-{i}" };
            threads[i].Start();
        }
        foreach (Thread t in threads)
            t.Join();
        return $"{threads.Length} threads, {seconds:F1} s of CPU each\n";
    }
}
