// Compiled ahead of time. Keeps its own code, generics, lambdas, local functions and async methods busy.
using System.Diagnostics;
using System.Runtime.CompilerServices;

double seconds = args.Length > 0 ? double.Parse(args[0]) : 2;
Stopwatch time = Stopwatch.StartNew();
long sum = 0;
Func<long, long> square = x => Work.Burn(x) * x;
while (time.Elapsed.TotalSeconds < seconds)
{
    sum += Work.Burn(sum);
    sum += new Boxes<string>().Fill("text") + new Boxes<int>().Fill(7);
    sum += square(sum & 3);
    sum += Local(sum & 1);
    sum += await Work.LaterAsync(sum & 7);
}
Console.WriteLine(sum & 1);

[MethodImpl(MethodImplOptions.NoInlining)]
static long Local(long from) => Work.Burn(from);

static class Work
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Burn(long from)
    {
        for (int i = 0; i < 20000; i++)
            from = from * 31 + i;
        return from;
    }

    public static async Task<long> LaterAsync(long from)
    {
        await Task.Yield();
        return Burn(from);
    }
}

class Boxes<T>
{
    private readonly List<T> _all = [];

    [MethodImpl(MethodImplOptions.NoInlining)]
    public int Fill(T one)
    {
        _all.Clear();
        for (int i = 0; i < 20000; i++)
            _all.Add(one);
        return _all.Count;
    }
}
