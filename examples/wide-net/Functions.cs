using System.Runtime.CompilerServices;
using System.Threading.Tasks.Sources;

namespace WideNet;

/// <summary>Runs continuations on the requesting thread, so that their CPU time and stacks belong to the phase.</summary>
internal sealed class Pump : SynchronizationContext
{
    private readonly Queue<(SendOrPostCallback Call, object? State)> queue = new();

    public override void Post(SendOrPostCallback d, object? state) => queue.Enqueue((d, state));

    public static T Run<T>(Func<ValueTask<T>> work)
    {
        SynchronizationContext? before = Current;
        var pump = new Pump();
        SetSynchronizationContext(pump);
        try
        {
            ValueTask<T> task = work();
            while (!task.IsCompleted && pump.queue.TryDequeue(out var next))
                next.Call(next.State);
            return task.Result;
        }
        finally
        {
            SetSynchronizationContext(before);
        }
    }
}

internal static class AsyncPhases
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long ValueTasks(int seed) => Pump.Run(() => Chain(12, seed));

    private static async ValueTask<long> Chain(int depth, int seed)
    {
        if (depth == 0)
        {
            await Task.Yield();
            return Burn(seed);
        }
        long inner = await Chain<List<string>>(depth - 1, seed);
        return inner + await Task.FromResult(depth);
    }

    private static async Task<long> Chain<T>(int depth, int seed)
    {
        await Task.Yield();
        return Burn(depth) + await Chain(depth, seed) + Unsafe.SizeOf<T>();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long AsyncStreams(int seed) => Pump.Run(async () =>
    {
        long sum = 0;
        await foreach (long value in Twice(Numbers(seed)))
            sum += value;
        return sum;
    });

    private static async IAsyncEnumerable<int> Numbers(int seed)
    {
        for (int i = 0; i < 20; i++)
        {
            if (i % 4 == 0)
                await Task.Yield();
            yield return i + seed;
        }
    }

    private static async IAsyncEnumerable<long> Twice(IAsyncEnumerable<int> numbers)
    {
        await foreach (int number in numbers)
            yield return 2 * Burn(number);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Iterators(int seed)
    {
        long sum = 0;
        foreach (long value in Squares(Count(seed, 60)))
            sum += value;
        return sum;
    }

    private static IEnumerable<int> Count(int from, int count)
    {
        for (int i = 0; i < count; i++)
            yield return from + i;
    }

    private static IEnumerable<long> Squares<T>(IEnumerable<T> of) where T : IConvertible
    {
        foreach (T value in of)
            yield return value.ToInt64(null) * value.ToInt64(null) + Burn(1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Burn(int n)
    {
        long sum = n;
        for (int i = 0; i < 300; i++)
            sum = sum * 31 + i % 7;
        return sum & 0xff;
    }
}

internal static class FunctionPhases
{
    private static readonly Func<int, long> Static = static n => Spin(n, 100);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Lambdas(int seed)
    {
        long sum = 0;
        Action<int> add = n => sum += Spin(n, 100);
        Func<Func<int, long>, Func<int, long>> twice = inner => n => inner(n) + inner(n + 1);
        for (int i = 0; i < 10; i++)
        {
            add(i + seed);
            sum += twice(twice(Static))(i);
            sum += Apply((string text) => text.Length + Spin(i, 50), "text");
        }
        return sum;
    }

    private static TOut Apply<TIn, TOut>(Func<TIn, TOut> f, TIn value) => f(value);

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long LocalFunctions(int seed)
    {
        return Outer(seed) + Generic("text") + Generic(seed) + Later().Sum();

        long Outer(int n)
        {
            return Inner(3);

            long Inner(int depth) => depth == 0 ? Spin(n, 400) : Inner(depth - 1) + 1;
        }

        static long Generic<T>(T value) => Spin(value!.GetHashCode() & 15, 200);

        IEnumerable<long> Later()
        {
            for (int i = 0; i < 5; i++)
                yield return Spin(seed + i, 100);
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Spin(int n, int rounds)
    {
        long sum = n;
        for (int i = 0; i < rounds; i++)
            sum += sum % 13 + i;
        return sum & 0xffff;
    }
}

internal interface IShape
{
    long Area(int scale);
    long Edges { get; }
}

internal interface IShape<T> where T : struct
{
    T Area(T scale);
    long Default(int n) => n + 1;
}

/// <summary>More types than an inline cache holds, so calls go through resolve stubs.</summary>
internal static class DispatchPhases
{
    private abstract class Shape(int size) : IShape
    {
        protected readonly int Size = size;
        long IShape.Area(int scale) => Measure(scale);
        public virtual long Edges => Size;
        protected abstract long Measure(int scale);
    }

    private sealed class Kind0(int n) : Shape(n) { protected override long Measure(int s) => s * Size; }
    private sealed class Kind1(int n) : Shape(n) { protected override long Measure(int s) => s + Size; }
    private sealed class Kind2(int n) : Shape(n) { protected override long Measure(int s) => s - Size; public override long Edges => 2; }
    private sealed class Kind3(int n) : Shape(n) { protected override long Measure(int s) => s ^ Size; }
    private sealed class Kind4(int n) : Shape(n) { protected override long Measure(int s) => s | Size; public override long Edges => 4; }
    private sealed class Kind5(int n) : Shape(n) { protected override long Measure(int s) => s & Size; }
    private sealed class Kind6(int n) : Shape(n) { protected override long Measure(int s) => s << 2; }
    private readonly struct Kind7(int n) : IShape { public long Area(int s) => n / (s + 1); public long Edges => n; }

    private static readonly IShape[] Shapes =
        [new Kind0(1), new Kind1(2), new Kind2(3), new Kind3(4), new Kind4(5), new Kind5(6), new Kind6(7), new Kind7(8)];

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Interfaces(int seed)
    {
        long sum = 0;
        for (int i = 0; i < 2000; i++)
        {
            IShape shape = Shapes[(i * 5 + seed) & 7];
            sum += shape.Area(i & 15) + shape.Edges;
        }
        return sum;
    }

    private static long called;
    private static readonly Action<int> Multicast = (Action<int>)Add + Add + (n => called -= n) + new Adder().Add;

    private sealed class Adder
    {
        public void Add(int n) => called += n;
    }

    private static void Add(int n) => called += n;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Delegates(int seed)
    {
        var open = (Func<string, int, char>)Delegate.CreateDelegate(typeof(Func<string, int, char>), typeof(string).GetMethod("get_Chars")!);
        for (int i = 0; i < 300; i++)
        {
            Multicast(i + seed);
            called += open("text", i & 3);
        }
        return called;
    }
}
