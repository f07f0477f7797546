// Threads whose stacks are known: each goes through one chain of methods for ever, and which that is is written down before, for the test
// that compares samples with it. Says for each mode:
//     MODE NAME COMM CHAIN    the thread's name as the kernel has it, and what a stack of it may be from its start on
//     LEAF NAME CALLER TEXT   a frame of user code at the top whose name or module has TEXT in it must have been called by CALLER
//     TRACE NAME CHAIN        while working: managed methods from the thread's start to the one that burns, as the runtime's own stack trace
//                             has them, once for each that is met; names of the framework too
//     warm                    there was next to nothing new to compile for two seconds, so that what is hot is in its last tier
// A CHAIN is made of "Type::Method" or names of native functions, separated by ";", which must follow each other with nothing
// in between; "..." is any number of frames of others (the framework, stubs, the runtime, none at all); "*" behind a name says that this
// function calls others, which may be anything but what the chain names; "A|B" is one of them; "A{9}" is nine of them. A sample may have been taken
// anywhere on the way, so a stack may end before its chain does. A mode may have several chains.
// usage: stacks SECONDS [--only NAME[,NAME]] [--except NAME[,NAME]]; BURN_LIBRARY is the path of libburn.so
using System.Collections.Concurrent;
using System.Diagnostics;
using System.Globalization;
using System.Reflection;
using System.Runtime;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;

namespace Stacks;

internal sealed record Mode(string Name, Action Once, params string[] Chains)
{
    /// <summary>What the kernel calls its threads; of thread pools and of the main thread it is not the mode's name.</summary>
    public string Comm { get; init; } = Name;
    public string[] Leaves { get; init; } = [];
    public bool IsTraced { get; init; } = true;

    /// <summary>The first method of its thread that is ours, and the caller of one that on-stack replacement takes over.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public void Start()
    {
        if (IsTraced)
            Trace.Begin(Name);
        Repeat();
        Stopped++;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private void Repeat()
    {
        while (!Program.Stop)
            Once();
    }

    public static int Stopped;
}

internal static class Program
{
    public static volatile bool Stop;
    public static readonly ManualResetEventSlim Warm = new();

    private static readonly Mode[] All =
    [
        .. Computing.Modes, .. Calls.Modes, .. Framework.Modes, .. Native.Modes, .. Exceptional.Modes, .. Asynchronous.Modes, .. Types.Modes,
    ];

    private static int Main(string[] args)
    {
        string[] only = [], except = [];
        double seconds = 10;
        for (int i = 0; i < args.Length; i++)
        {
            switch (args[i])
            {
                case "--only": only = args[++i].Split(','); break;
                case "--except": except = args[++i].Split(','); break;
                default: seconds = double.Parse(args[i], CultureInfo.InvariantCulture); break;
            }
        }
        NativeLibrary.SetDllImportResolver(typeof(Program).Assembly, static (name, _, _) =>
            name == "burn" && Environment.GetEnvironmentVariable("BURN_LIBRARY") is { } path ? NativeLibrary.Load(path) : 0);
        bool Chosen(string name) => (only.Length == 0 || only.Contains(name)) && !except.Contains(name);
        Mode[] modes = All.Where(mode => Chosen(mode.Name)).ToArray();

        foreach (Mode mode in modes)
            Say(mode);
        if (Chosen("main"))
            Say(new Mode("main", Run, "Program::Main;Program::Run;Program::Middle;Work::Burn*") { Comm = "-" });
        Console.WriteLine($"working pid {Environment.ProcessId}");
        foreach (Mode mode in modes)
            new Thread(mode.Start) { Name = mode.Name, IsBackground = true }.Start();
        using var end = new Timer(_ => Stop = true, null, TimeSpan.FromSeconds(seconds), Timeout.InfiniteTimeSpan);
        new Thread(SayWhenWarm) { IsBackground = true }.Start();
        if (Chosen("main"))
            Run();
        while (!Stop)
            Thread.Sleep(10);
        return 0;
    }

    // The runtime puts off to compile better what there is while new code comes.
    private static void SayWhenWarm()
    {
        const int Quiet = 4, Most = 60, Few = 2;
        long before = 0;
        for (int same = 0, i = 0; same < Quiet && i < Most; i++)
        {
            Thread.Sleep(500);
            long now = JitInfo.GetCompiledMethodCount();
            same = now - before <= Few ? same + 1 : 0;
            before = now;
        }
        Warm.Set();
        Console.WriteLine("warm");
    }

    private static void Say(Mode mode)
    {
        foreach (string chain in mode.Chains)
            Console.WriteLine($"MODE {mode.Name} {mode.Comm.Replace(' ', '_')} {(mode.Comm == mode.Name ? "Mode::Start;Mode::Repeat;" : "")}{chain}");
        foreach (string leaf in mode.Leaves)
            Console.WriteLine($"LEAF {mode.Name} {leaf}");
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Run()
    {
        Trace.Begin("main");
        while (!Stop)
            Middle();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Middle() => Work.Keep(Work.Burn(1) + Work.Burn(2));
}

internal static class Work
{
    private static long kept;

    /// <summary>The leaf of most chains: some microseconds in a loop that nothing is inlined into.</summary>
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Burn(long from)
    {
        if (Trace.IsDue())
            Trace.Take();
        for (int i = 0; i < 5000; i++)
            from = from * 31 + i;
        return from;
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public static void Keep(long value) => kept += value;
}

/// <summary>What the runtime itself has for stacks, now and then.</summary>
internal static class Trace
{
    private const int Rounds = 1499; // of Burn: some 10 ms, and not always the same one of several calls
    private static readonly ConcurrentDictionary<string, bool> Said = new();
    [ThreadStatic] private static string? mode;
    [ThreadStatic] private static int left;

    public static void Begin(string name)
    {
        mode = name;
        left = Rounds;
    }

    /// <summary>The same on a thread of a pool.</summary>
    public static void Enter(string name)
    {
        if (mode is null)
            Begin(name);
    }

    [MethodImpl(MethodImplOptions.AggressiveInlining)]
    public static bool IsDue() => --left == 0;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static void Take()
    {
        left = Rounds;
        var text = new StringBuilder();
        StackFrame[] frames = new StackTrace(1).GetFrames();
        for (int i = frames.Length - 1; i >= 0; i--)
            if (frames[i].GetMethod() is { } method && (method.Attributes & MethodAttributes.PinvokeImpl) == 0)
                text.Append(text.Length > 0 ? ";" : "").Append(NameOf(method));
        string line = $"TRACE {mode} {text}";
        if (Said.TryAdd(line, true))
            Console.WriteLine(line);
    }

    /// <summary>Type::Method without type arguments; what the compiler made has the name that it has.</summary>
    public static string NameOf(MethodBase method)
    {
        if (method.DeclaringType is not { } type)
            return $"dynamicClass::{method.Name}";
        string name = type.Name;
        for (Type? outer = type.DeclaringType; outer is not null; outer = outer.DeclaringType)
            name = $"{outer.Name}+{name}";
        return $"{(type.Namespace is null or nameof(Stacks) ? "" : type.Namespace + ".")}{name}::{method.Name}";
    }
}
