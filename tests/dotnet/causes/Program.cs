// Threads that each wait for one known cause, and have its name. Once the file GO exists they work for SECONDS; then prints "NAME MS" for
// each thread: the time that it measured itself, around its waits. Then "done", and sleeps until a signal ends it.
// usage: causes GO SECONDS MODE...: lock, newlock, semaphore, timer, socket, pipe, disk, task, gc, starvation, jit, background
using System.Diagnostics;
using System.IO.Pipes;
using System.Net;
using System.Net.Sockets;
using System.Reflection;

using System.Reflection.Emit;
using System.Runtime.CompilerServices;

internal static class Program
{
    public static volatile bool Ended;

    private static int Main(string[] args)
    {
        List<Waiter> waiters = [];

        Console.WriteLine($"working pid {Environment.ProcessId}");
        while (!File.Exists(args[0]))
            Thread.Sleep(20);
        foreach (string mode in args.Skip(2))
            waiters.AddRange(Waits.Of(mode));
        foreach (Waiter waiter in waiters)
            waiter.Start();
        Thread.Sleep(int.Parse(args[1]) * 1000);
        Ended = true;
        foreach (Waiter waiter in waiters)
            waiter.Join();
        foreach (Waiter waiter in waiters)
            Console.WriteLine($"{waiter.Name} {waiter.Milliseconds:F0}");
        Console.WriteLine("done");
        Thread.Sleep(Timeout.Infinite);
        return 0;
    }
}

/// <summary>A thread that waits again and again, until the end.</summary>
internal sealed class Waiter
{
    private readonly Thread thread;
    private long ticks;

    public Waiter(string name, Action once, Action? end = null)
        => thread = new(() => Run(once, end)) { Name = name, IsBackground = true };

    public string Name => thread.Name!;
    public double Milliseconds => ticks * 1000.0 / Stopwatch.Frequency;
    public void Start() => thread.Start();
    public void Join() => thread.Join();

    [MethodImpl(MethodImplOptions.NoInlining)]
    private void Run(Action once, Action? end)
    {
        while (!Program.Ended)
        {
            long begin = Stopwatch.GetTimestamp();

            once();
            ticks += Stopwatch.GetTimestamp() - begin;
        }
        end?.Invoke();
    }
}

internal static class Waits
{
    private static volatile Func<int, int> made = value => value;

    public static IEnumerable<Waiter> Of(string mode) => mode switch
    {
        "lock" => Lock(),
        "newlock" => NewLock(),
        "semaphore" => Semaphore(),
        "timer" => [new("timer", Sleeps)],
        "socket" => Socket(),
        "pipe" => Pipe(),
        "disk" => Disk(),
        "task" => [new("task", WaitsForTask)],
        "gc" => Gc(),
        "background" => [new("background", CollectsBehind(SmallObjects()))],
        "starvation" => [new("starvation", Starves)],
        "jit" => Jit(),
        _ => throw new ArgumentException(mode),
    };

    private static Waiter[] Lock()
    {
        object it = new();

        return [new("lock-owner", () => HoldsLock(it)), new("lock", () => TakesLock(it))];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void HoldsLock(object it)
    {
        lock (it)
            Thread.Sleep(20);
        Thread.Sleep(2);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void TakesLock(object it)
    {
        lock (it)
            Thread.SpinWait(10);
    }

#if NET9_0_OR_GREATER
    private static Waiter[] NewLock()
    {
        Lock it = new();

        return [new("newlock-owner", () => HoldsNewLock(it)), new("newlock", () => TakesNewLock(it))];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void HoldsNewLock(Lock it)
    {
        lock (it)
            Thread.Sleep(20);
        Thread.Sleep(2);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void TakesNewLock(Lock it)
    {
        lock (it)
            Thread.SpinWait(10);
    }
#else
    private static Waiter[] NewLock() => [];
#endif

    private static Waiter[] Semaphore()
    {
        SemaphoreSlim it = new(0);

        return [new("semaphore-giver", () => { Thread.Sleep(10); it.Release(); }), new("semaphore", () => TakesSemaphore(it))];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void TakesSemaphore(SemaphoreSlim it) => it.Wait(100);

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Sleeps() => Thread.Sleep(15);

    private static Waiter[] Socket()
    {
        TcpListener listener = new(IPAddress.Loopback, 0);
        TcpClient client = new();

        listener.Start();
        client.Connect((IPEndPoint)listener.LocalEndpoint);
        TcpClient server = listener.AcceptTcpClient();

        return [new("socket-sender", () => { Thread.Sleep(12); client.Client.Send(new byte[1]); }), new("socket", () => Receives(server.Client))];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Receives(Socket socket)
    {
        socket.ReceiveTimeout = 200;
        try
        {
            socket.Receive(new byte[1]);
        }
        catch (SocketException) when (Program.Ended)
        {
        }
    }

    private static Waiter[] Pipe()
    {
        AnonymousPipeServerStream writer = new(PipeDirection.Out);
        AnonymousPipeClientStream reader = new(PipeDirection.In, writer.ClientSafePipeHandle);

        return [new("pipe-writer", () => { Thread.Sleep(12); writer.WriteByte(1); }, writer.Dispose), new("pipe", () => reader.ReadByte())];
    }

    private static Waiter[] Disk()
    {
        string path = Path.Combine(Path.GetTempPath(), $"causes-{Environment.ProcessId}");
        FileStream file = new(path, FileMode.Create, FileAccess.ReadWrite, FileShare.None, 1, FileOptions.DeleteOnClose);

        return [new("disk", () => Flushes(file))];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Flushes(FileStream file)
    {
        file.Position = 0;
        file.Write(new byte[1 << 16]);
        file.Flush(true);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void WaitsForTask() => Task.Delay(15).Wait();

    // One thread collects a large heap of small objects; the others only count, and call so that they can be stopped.
    private static Waiter[] Gc()
    {
        List<object[]> heap = SmallObjects();

        return [new("gc-trigger", () => Collects(heap)), new("gc", Counts)];
    }

    private static List<object[]> SmallObjects()
    {
        List<object[]> heap = [];

        for (int i = 0; i < 400; i++)
        {
            object[] part = new object[5000];

            for (int k = 0; k < part.Length; k++)
                part[k] = new byte[24];
            heap.Add(part);
        }
        return heap;
    }

    // A background collection, and new objects that the next one must sweep.
    private static Action CollectsBehind(List<object[]> heap)
    {
        GC.Collect();
        return () =>
        {
            foreach (object[] part in heap)
                part[Random.Shared.Next(part.Length)] = new byte[24];
            GC.Collect(2, GCCollectionMode.Forced, blocking: false);
            Thread.Sleep(10);
        };
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Collects(List<object[]> heap)
    {
        GC.Collect();
        GC.KeepAlive(heap);
        Thread.Sleep(30);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Counts()
    {
        for (int i = 0; i < 1000; i++)
            Thread.SpinWait(20);
    }

    // Each of these work items waits for another, which gets a thread only when the pool adds one.
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Starves()
    {
        Task[] tasks = new Task[40];

        for (int i = 0; i < tasks.Length; i++)
            tasks[i] = Task.Run(NeedsAnother);
        while (!Task.WhenAll(tasks).IsCompleted)
            Thread.Sleep(5);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void NeedsAnother()
    {
        TaskCompletionSource done = new();

        ThreadPool.QueueUserWorkItem(_ => done.SetResult());
        done.Task.Wait();
    }

    // Both call a method that no thread has called before: one compiles it, the other waits for that.
    private static Waiter[] Jit()
    {
        Barrier both = new(2);

        return [new("jit-maker", () => { made = Makes(); both.SignalAndWait(500); Invokes(made); both.SignalAndWait(500); }),
            new("jit", () => { both.SignalAndWait(500); Invokes(made); both.SignalAndWait(500); })];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Invokes(Func<int, int> method) => method(1);

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static Func<int, int> Makes()
    {
        AssemblyBuilder assembly = AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Made"), AssemblyBuilderAccess.Run);
        TypeBuilder type = assembly.DefineDynamicModule("Made").DefineType("Made");
        MethodBuilder method = type.DefineMethod("Method", MethodAttributes.Public | MethodAttributes.Static, typeof(int), [typeof(int)]);
        ILGenerator il = method.GetILGenerator();

        il.Emit(OpCodes.Ldarg_0);
        for (int i = 0; i < 9000; i++)
        {
            il.Emit(OpCodes.Ldc_I4, i);
            il.Emit(i % 2 == 0 ? OpCodes.Add : OpCodes.Xor);
        }
        il.Emit(OpCodes.Ret);
        return type.CreateType().GetMethod("Method")!.CreateDelegate<Func<int, int>>();
    }
}
