using System.Diagnostics;
using System.Globalization;
using System.Net;
using System.Net.Sockets;

namespace WideNet;

/// <summary>
/// Delays of the process, measured from inside: by a thread that ticks each millisecond, and by one-byte requests over the
/// loopback interface each millisecond. Prints a line each second, and the totals at the end.
/// </summary>
internal sealed class Latency
{
    private sealed class Series(string name)
    {
        private readonly List<double> all = [], second = [];

        public void Add(double milliseconds)
        {
            lock (all)
            {
                all.Add(milliseconds);
                second.Add(milliseconds);
            }
        }

        public string Second()
        {
            lock (all)
            {
                string text = Text(second);
                second.Clear();
                return text;
            }
        }

        public string All()
        {
            lock (all)
                return Text(all);
        }

        private string Text(List<double> values)
        {
            if (values.Count == 0)
                return $"{name} none";
            double[] sorted = [.. values.Order()];
            return string.Create(CultureInfo.InvariantCulture,
                $"{name} {sorted.Length} p50 {sorted[sorted.Length / 2]:F2} p99 {sorted[sorted.Length * 99 / 100]:F2} worst {sorted[^1]:F2} ms");
        }
    }

    private readonly Series ticks = new("ticks"), requests = new("requests");
    private volatile bool ended;

    public static Latency Begin()
    {
        var latency = new Latency();
        foreach ((string name, Action work) in new (string, Action)[] {
            ("latency-tick", latency.Tick), ("latency-serve", latency.Serve), ("latency-print", latency.PrintSeconds) })
            new Thread(() => work()) { IsBackground = true, Name = name }.Start();
        return latency;
    }

    public void End()
    {
        ended = true;
        Console.WriteLine($"latency all {ticks.All()}, {requests.All()}");
    }

    private void Tick()
    {
        while (!ended)
        {
            long start = Stopwatch.GetTimestamp();
            Thread.Sleep(1);
            ticks.Add(Stopwatch.GetElapsedTime(start).TotalMilliseconds);
        }
    }

    private void Serve()
    {
        using var listener = new TcpListener(IPAddress.Loopback, 0);
        listener.Start();
        var port = (IPEndPoint)listener.LocalEndpoint;
        new Thread(() => Ask(port)) { IsBackground = true, Name = "latency-ask" }.Start();
        using Socket socket = listener.AcceptSocket();
        socket.NoDelay = true;
        var one = new byte[1];
        while (socket.Receive(one) == 1)
            socket.Send(one);
    }

    private void Ask(IPEndPoint port)
    {
        using var socket = new Socket(SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        socket.Connect(port);
        var one = new byte[1];
        while (!ended)
        {
            long start = Stopwatch.GetTimestamp();
            socket.Send(one);
            socket.Receive(one);
            requests.Add(Stopwatch.GetElapsedTime(start).TotalMilliseconds);
            Thread.Sleep(1);
        }
    }

    private void PrintSeconds()
    {
        for (int second = 1; !ended; second++)
        {
            Thread.Sleep(1000);
            Console.WriteLine($"latency second {second} {ticks.Second()}, {requests.Second()}");
        }
    }
}
