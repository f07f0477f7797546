using System.Numerics;
using System.Runtime.CompilerServices;

namespace WideNet;

internal interface IFold<T>
{
    TOut Fold<TOut>(T value, TOut from, Func<TOut, T, TOut> step);
}

internal readonly record struct Pair<TLeft, TRight>(TLeft Left, TRight Right);

internal sealed class Tree<TKey, TValue> where TKey : IComparable<TKey>
{
    private sealed class Node(TKey key, TValue value)
    {
        public readonly TKey Key = key;
        public TValue Value = value;
        public Node? Left, Right;
    }

    public sealed class Walker<TResult>(Tree<TKey, TValue> tree)
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public TResult Walk(TResult from, Func<TResult, TKey, TValue, TResult> step) => Walk(tree.root, from, step);

        private static TResult Walk(Node? node, TResult from, Func<TResult, TKey, TValue, TResult> step)
        {
            if (node is null)
                return from;
            from = step(Walk(node.Left, from, step), node.Key, node.Value);
            return Walk(node.Right, from, step);
        }
    }

    private Node? root;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public void Put(TKey key, TValue value)
    {
        ref Node? at = ref root;
        while (at is not null)
        {
            int order = key.CompareTo(at.Key);
            if (order == 0)
            {
                at.Value = value;
                return;
            }
            at = ref order < 0 ? ref at.Left : ref at.Right;
        }
        at = new Node(key, value);
    }
}

internal static class Level<T>
{
    public static class Deeper<TInner>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static int Measure<TMethod>(int depth)
        {
            if (depth == 0)
                return Unsafe.SizeOf<T>() + Unsafe.SizeOf<TInner>() + Unsafe.SizeOf<TMethod>();
            return Level<TInner>.Deeper<T>.Measure<Pair<int, TMethod?>>(0) + Level<T>.Deeper<TInner>.Measure<TMethod>(depth - 1);
        }
    }
}

internal sealed class Folder<T> : IFold<T>
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public TOut Fold<TOut>(T value, TOut from, Func<TOut, T, TOut> step)
    {
        for (int i = 0; i < 20; i++)
            from = step(from, value);
        return from;
    }
}

internal sealed class OtherFolder<T> : IFold<T>
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public TOut Fold<TOut>(T value, TOut from, Func<TOut, T, TOut> step) => step(step(from, value), value);
}

internal static class GenericPhases
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Values(int seed)
    {
        var tree = new Tree<long, Pair<int, Guid>>();
        for (int i = 0; i < 100; i++)
            tree.Put((i * 7919L + seed) % 101, new Pair<int, Guid>(i, default));
        return new Tree<long, Pair<int, Guid>>.Walker<long>(tree).Walk(0, (sum, key, value) => sum ^ (key * value.Left)) +
               Level<int>.Deeper<Pair<byte, decimal>>.Measure<Vector3>(5);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long References(int seed)
    {
        var tree = new Tree<string, Dictionary<string, List<int[]>>>();
        for (int i = 0; i < 40; i++)
            tree.Put(Keys[(i * 31 + seed) & 63], new Dictionary<string, List<int[]>> { [Keys[i]] = [] });
        return new Tree<string, Dictionary<string, List<int[]>>>.Walker<int>(tree).Walk(0, (sum, key, value) => sum + key.Length + value.Count) +
               Level<string>.Deeper<Pair<object, List<Uri>>>.Measure<Dictionary<int, string>>(5);
    }

    private static readonly string[] Keys = Enumerable.Range(0, 64).Select(i => $"key {i * 37 % 64}").ToArray();

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long StaticAbstract(int seed) =>
        (long)Sum<double>(seed) + Sum<int>(seed) + (long)Sum<Int128>(seed) + (long)Sum<decimal>(seed);

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static T Sum<T>(int seed) where T : INumber<T>
    {
        T sum = T.Zero, step = T.CreateChecked(seed % 7 + 1);
        for (int i = 0; i < 100; i++)
            sum = T.Max(sum + step, step);
        return sum;
    }

    private static readonly IFold<string>[] Strings = [new Folder<string>(), new OtherFolder<string>()];
    private static readonly IFold<int>[] Numbers = [new Folder<int>(), new OtherFolder<int>()];

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long VirtualMethods(int seed)
    {
        long sum = 0;
        for (int i = 0; i < 20; i++)
        {
            sum += Strings[i & 1].Fold("text", 0, (n, text) => n + text.Length);
            sum += (long)Numbers[i & 1].Fold(seed, 0.5, (x, n) => x + n);
            sum += Strings[i & 1].Fold("text", "", (a, b) => a.Length > 8 ? b : a + b).Length;
        }
        return sum;
    }
}
