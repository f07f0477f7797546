using System.Runtime.CompilerServices;

namespace WebApi;

/// <summary>Threads that wait: they cost latency and threads, but no CPU. Nothing is inlined, so every tier has the same frames.</summary>
internal static class Waiting
{
    private const int ThreadsMax = 200;
    private const int MillisecondsMax = 10_000;

    /// <summary>The classic mistake: a pool thread blocks until an asynchronous wait ends.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static string BlockOnDelay(int milliseconds)
    {
        Task.Delay(milliseconds).Wait();
        return $"waited {milliseconds} ms\n";
    }

    /// <summary>Occupies many pool threads at once; other requests wait until the pool grows.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static string BlockThreads(int threads, int milliseconds)
    {
        threads = Math.Clamp(threads, 1, ThreadsMax);
        milliseconds = Math.Clamp(milliseconds, 1, MillisecondsMax);
        var tasks = new Task[threads];
        for (int i = 0; i < threads; i++)
            tasks[i] = Task.Run(() => Thread.Sleep(milliseconds));
        Task.WaitAll(tasks);
        return $"blocked {threads} threads for {milliseconds} ms each\n";
    }
}
