// Keeps threads busy with all kinds of managed code; README.md in this folder explains them.
using System.Globalization;
using WideNet;

double seconds = 10, linger = 0;
int threads = 2, methods = 0;
bool latency = false;
string only = "", except = "";

for (int i = 0; i < args.Length; i++)
{
    string Value() => ++i < args.Length ? args[i] : throw new ArgumentException($"{args[i - 1]} needs a value");
    switch (args[i])
    {
        case "--threads": threads = int.Parse(Value(), CultureInfo.InvariantCulture); break;
        case "--methods": methods = int.Parse(Value(), CultureInfo.InvariantCulture); break;
        case "--linger": linger = double.Parse(Value(), CultureInfo.InvariantCulture); break;
        case "--only": only = Value(); break;
        case "--except": except = Value(); break;
        case "--latency": latency = true; break;
        default: seconds = double.Parse(args[i], CultureInfo.InvariantCulture); break;
    }
}

Phase[] phases = Phases.All.Where(phase => phase.Name.Contains(only, StringComparison.Ordinal)
    && (except.Length == 0 || !phase.Name.Contains(except, StringComparison.Ordinal))).ToArray();
if (phases.Length == 0)
{
    Console.Error.WriteLine($"no phase is left with '{only}' and without '{except}' in its name");
    return 2;
}
ManyMethods? many = methods > 0 ? ManyMethods.Make(methods) : null;
if (many is not null)
    Console.WriteLine($"made {many.Count} methods in {many.MakeSeconds:F1} s");
Latency? measured = latency ? Latency.Begin() : null;
Console.WriteLine($"working pid {Environment.ProcessId}");
if (threads > 0)
    Workers.Run(phases, many, threads, TimeSpan.FromSeconds(seconds));
else
    Thread.Sleep(TimeSpan.FromSeconds(seconds));
measured?.End();
Workers.Print(phases);
if (linger > 0)
{
    Console.WriteLine("quiet");
    Thread.Sleep(TimeSpan.FromSeconds(linger));
}
return 0;
