// Threads with known stacks: each runs one chain of methods for ever. The program prints the chains first; tests compare
// samples with them. Lines for each mode:
//     MODE NAME COMM CHAIN    the thread's name in the kernel, and a possible stack from the thread's start
//     LEAF NAME CALLER TEXT   CALLER must have called a leaf frame of user code whose name or module contains TEXT
//     TRACE NAME CHAIN        while working: managed methods from the thread's start to the burning one, as in the runtime's own
//                             stack trace, once for each different trace; includes names of the framework
//     warm                    for two seconds almost nothing new was compiled, so hot methods are in their last tier
// A CHAIN consists of "Type::Method" or names of native functions, separated by ";". They must follow each other without gaps.
// "..." is any number of foreign frames (framework, stubs, runtime), or none. "*" after a name: the function calls others,
// except those that the chain names. "A|B" is one of them, "A{9}" is nine of them. A sample may be taken anywhere on the
// way, so a stack may end before its chain does. A mode may have several chains.
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
    /// <summary>The kernel's name of its threads; threads of pools and the main thread do not have the mode's name.</summary>
    public string Comm { get; init; } = Name;
    public string[] Leaves { get; init; } = [];
    public bool IsTraced { get; init; } = true;

    /// <summary>Our first method on its thread, and the caller of a method that on-stack replacement takes over.</summary>
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
            Describe(mode);
        if (Chosen("main"))
            Describe(new Mode("main", Run, "Program::Main;Program::Run;Program::Middle;Work::Burn*") { Comm = "-" });
        Console.WriteLine($"working pid {Environment.ProcessId}");
        foreach (Mode mode in modes)
            new Thread(mode.Start) { Name = mode.Name, IsBackground = true }.Start();
        using var end = new Timer(_ => Stop = true, null, TimeSpan.FromSeconds(seconds), Timeout.InfiniteTimeSpan);
        new Thread(PrintWhenWarm) { IsBackground = true }.Start();
        if (Chosen("main"))
            Run();
        while (!Stop)
            Thread.Sleep(10);
        return 0;
    }

    // The runtime delays optimisation while new code is compiled.
    private static void PrintWhenWarm()
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

    private static void Describe(Mode mode)
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

    /// <summary>The leaf of most chains: some microseconds in a loop without inlined calls.</summary>
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

/// <summary>Prints the runtime's own stack traces now and then.</summary>
internal static class Trace
{
    private const int Rounds = 1499; // of Burn: some 10 ms, and not always in the same one of several calls
    private static readonly ConcurrentDictionary<string, bool> Printed = new();
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
        if (Printed.TryAdd(line, true))
            Console.WriteLine(line);
    }

    /// <summary>Type::Method without type arguments; compiler-generated methods keep their names.</summary>
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
