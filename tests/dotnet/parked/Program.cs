// Threads that stay in known places: each runs Places.METHOD, has the name METHOD, and does what it says. MORE further
// threads sleep in Places.More. With CHURN, other threads begin and end all the time.
// usage: parked SECONDS [MORE [CHURN]]
using System.Net;
using System.Net.Sockets;
using System.Runtime.CompilerServices;

int seconds = args.Length > 0 ? int.Parse(args[0]) : 10;
int more = args.Length > 1 ? int.Parse(args[1]) : 0;
Thread[] threads = [Start(Places.HoldsLock), Start(Places.WaitsForLock), Start(Places.Sleeps), Start(Places.ReadsSocket),
    Start(Places.WaitsForTask), Start(Places.WaitsForEvent), Start(Places.Busy)];
for (int i = 0; i < more; i++)
    Start(Places.More);
if (args.Length > 2)
    Start(Places.Churn);
foreach (Thread thread in threads)
    while (thread.Name is not (nameof(Places.Busy) or nameof(Places.ReadsSocket)) && (thread.ThreadState & ThreadState.WaitSleepJoin) == 0)
        Thread.Sleep(1);
Thread.Sleep(500);
Console.WriteLine($"parked pid {Environment.ProcessId}");
Places.Stays(seconds);

static Thread Start(Action place)
{
    Thread thread = new(() => place(), 256 << 10) { Name = place.Method.Name, IsBackground = true };
    thread.Start();
    return thread;
}

internal static class Places
{
    private static readonly object Lock = new();
    private static readonly ManualResetEventSlim Locked = new(), Never = new();
    private static readonly TaskCompletionSource Unfinished = new();
    private static long turns;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Stays(int seconds) => Thread.Sleep(seconds * 1000);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void HoldsLock()
    {
        lock (Lock)
        {
            Locked.Set();
            Thread.Sleep(Timeout.Infinite);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void WaitsForLock()
    {
        Locked.Wait();
        lock (Lock)
            Console.WriteLine("never");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Sleeps() => Thread.Sleep(Timeout.Infinite);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void More() => Thread.Sleep(Timeout.Infinite);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void ReadsSocket()
    {
        using TcpListener listener = new(IPAddress.Loopback, 0);
        listener.Start();
        using TcpClient client = new();
        client.Connect((IPEndPoint)listener.LocalEndpoint);
        using TcpClient server = listener.AcceptTcpClient();
        Console.WriteLine(server.Client.Receive(new byte[1]));
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void WaitsForTask() => Unfinished.Task.Wait();

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void WaitsForEvent() => Never.Wait();

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Busy()
    {
        for (; ; )
            turns++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Churn()
    {
        for (; ; )
        {
            Thread thread = new(() => Thread.Sleep(1)) { Name = "Short" };
            thread.Start();
            thread.Join();
        }
    }
}
