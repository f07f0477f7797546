// All ways in which .NET code is called and returns, in short turns. Some hundred thousand steps of a thread reach all of
// them. A letter in the second argument turns off a way that some runtimes lack.
// It may loop for some seconds before its first turn, whose calls are the first of their targets.
// usage: calls SECONDS [WITHOUT [SECONDS-BEFORE]]
using System.Diagnostics;
using System.Linq.Expressions;
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
using System.Text;
using System.Text.Json;
using System.Text.RegularExpressions;

double seconds = args.Length > 0 ? double.Parse(args[0]) : 2;
string without = args.Length > 1 ? args[1] : "";
double before = args.Length > 2 ? double.Parse(args[2]) : 0;
Stopwatch time = Stopwatch.StartNew();
while (time.Elapsed.TotalSeconds < before)
    ;
(char, Func<int, long>)[] ways =
[
    ('l', Leaves.Run), ('t', Leaves.TailCalls), ('m', Leaves.Maths), ('s', Leaves.Switches), ('f', Frames.Run), ('v', Frames.Vectors),
    ('i', Dispatch.Interfaces), ('d', Dispatch.Delegates), ('g', Dispatch.Generics), ('b', Dispatch.Boxes), ('c', Dispatch.Casts),
    ('e', Unusual.Exceptions), ('p', Native.Calls), ('q', Native.CallsBack), ('y', Unusual.Dynamic), ('r', Unusual.Recursion),
    ('a', n => Unusual.LaterAsync(n).GetAwaiter().GetResult()), ('j', Library.Json), ('x', Library.Regexes), ('o', Library.Collections),
    ('n', Library.Texts), ('w', Unusual.Statics),
];
long sum = 0;
for (int n = 0; time.Elapsed.TotalSeconds < seconds; n++)
    foreach ((char letter, Func<int, long> way) in ways)
        if (!without.Contains(letter))
            sum += way(n);
Console.WriteLine(sum & 1);

static class Leaves
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Leaf(long x) => x * 3;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long OneCall(long x) => Leaf(x) + 1; // no frame pointer

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Many(long a, long b, long c, long d, long e, long f, long g, long h) => Leaf(a) + Leaf(b) + c + d + e + f + Leaf(g) * h;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Tail(long x) => x > 100 ? Leaf(x) : Many(x, x, x, x, x, x, x, x);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long TailOfFrame(long x, long[] all)
    {
        long sum = 0;
        foreach (long one in all)
            sum += OneCall(one) + x;
        return Leaf(sum);
    }

    public static long Run(int n)
    {
        long sum = 0;
        for (int i = 0; i < 20; i++)
            sum += Leaf(i) + OneCall(n) + Many(1, 2, 3, 4, 5, 6, i, n);
        return sum;
    }

    public static long TailCalls(int n) => Tail(n & 127) + Tail(200) + TailOfFrame(n, [1, 2, 3, n]);

    public static long Maths(int n) => (long)(Math.Sin(n) * 100 + Math.Pow(1.5, n & 7) + Math.Exp(n & 3) + Math.Floor(n / 3.0) + Math.IEEERemainder(n, 3));

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Switch(int n) => n switch { 0 => Leaf(1), 1 => 5, 2 => OneCall(2), 3 => Leaf(9), 4 => 3, 5 => Leaf(n), 6 => OneCall(n), _ => 0 };

    public static long Switches(int n)
    {
        long sum = 0;
        for (int i = 0; i < 9; i++)
            sum += Switch((n + i) % 9);
        return sum;
    }
}

static unsafe class Frames
{
    struct Large
    {
        public fixed byte Bytes[9000];
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Touch(byte* p, int n) => p[n] + n;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Stack(int n)
    {
        byte* bytes = stackalloc byte[16 + (n & 255)];
        bytes[n & 15] = (byte)n;
        return Touch(bytes, n & 15);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Wide(int n)
    {
        Large large;
        large.Bytes[n & 4095] = 1;
        return Touch(large.Bytes, n & 4095);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Registers(long a, long b, long c, long d)
    {
        long e = a * b, f = c * d, g = a ^ d, h = b + c, i = a - c;
        for (int k = 0; k < 3; k++)
            e += Touch((byte*)&f, k & 7) + g + h * i;
        return e + f + g + h + i + a + b + c + d;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static decimal Big(decimal a, decimal b) => a * b + a / (b + 1);

    public static long Run(int n) => Stack(n) + Wide(n) + Registers(n, 2, 3, 4) + (long)Big(n & 15, 3);

    public static long Vectors(int n)
    {
        Span<float> a = stackalloc float[64], b = stackalloc float[64];
        a.Fill(n);
        a.CopyTo(b);
        return a.IndexOf(3f) + (a.SequenceEqual(b) ? 1 : 0) + (long)System.Numerics.Vector.Sum(System.Numerics.Vector<int>.One);
    }
}

interface IShape
{
    long Area(int n);
    long Twice(int n) => Area(n) * 2;
}

class Square : IShape
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public virtual long Area(int n) => (long)n * n;
}

sealed class Circle : Square
{
    public override long Area(int n) => 3 * base.Area(n);
}

struct Point(long x) : IShape, IEquatable<Point>
{
    public long Area(int n) => x + n;
    public bool Equals(Point other) => other.Area(0) == x;
    public override int GetHashCode() => (int)x;
    public override bool Equals(object? other) => other is Point p && Equals(p);
    [MethodImpl(MethodImplOptions.NoInlining)]
    public override string ToString() => "point";
}

sealed class Shape<T> : IShape
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public long Area(int n) => typeof(T) == typeof(string) ? n : n + 1;
    public T? Last;
}

abstract class Maker
{
    public abstract object Make<T>() where T : new();
}

sealed class ArrayMaker : Maker
{
    public override object Make<T>() => new T[] { new() };
}

sealed class ListMaker : Maker
{
    public override object Make<T>() => new List<T> { new() };
}

static class Dispatch
{
    static readonly IShape[] shapes = [new Square(), new Circle(), new Point(3), new Shape<string>(), new Shape<int>(), new Shape<object>()];
    static readonly Func<long, long> closed = new Square().Extra, multi = (Func<long, long>)(x => x + 1) + new Circle().Extra;
    static readonly Func<int, long, string, double, long> still = Static;
    static readonly Func<Square, int, long> open = typeof(Square).GetMethod(nameof(Square.Area))!.CreateDelegate<Func<Square, int, long>>();
    static readonly Maker[] makers = [new ArrayMaker(), new ListMaker()];

    static long Extra(this Square s, long x) => s.Area((int)x) + 1;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Static(int a, long b, string c, double d) => a + b + c.Length + (long)d;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long One(IShape shape, int n) => shape.Area(n);

    public static long Interfaces(int n)
    {
        long sum = One(shapes[0], n);
        foreach (IShape shape in shapes)
            sum += shape.Area(n) + shape.Twice(n);
        return sum;
    }

    public static long Delegates(int n)
    {
        Func<int, long> instance = shapes[n % shapes.Length].Area;
        return closed(n) + multi(n) + still(n, 2, "text", 3) + open(new Circle(), n) + instance(n);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static T[] Make<T>(T one) => [one, one];

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Count<T>(T one) where T : class => Make(one).Length + new Shape<T> { Last = one }.GetHashCode() % 2 + new List<T>(Make(one)).Count;

    public static long Generics(int n)
    {
        long sum = Count("text") + Count(new Square()) + Make(n).Length + Make(new Point(n)).Length;
        foreach (Maker maker in makers)
            sum += maker.Make<object>().GetHashCode() % 2 + maker.Make<Square>().GetHashCode() % 2 + maker.Make<int>().GetHashCode() % 2;
        return sum;
    }

    public static long Boxes(int n)
    {
        object box = new Point(n);
        return box.GetHashCode() + box.ToString()!.Length + (box.Equals(new Point(3)) ? 1 : 0) + ((IShape)box).Area(1);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static object Pick(int n) => (n % 3) switch { 0 => "text", 1 => new Circle(), _ => new object[] { "x" } };

    public static long Casts(int n)
    {
        object one = Pick(n);
        object[] strings = new string[2];
        strings[n & 1] = "stored";
        return (one is IShape ? 1 : 0) + (one as string ?? "").Length + (one is Square s ? s.Area(2) : 0) + strings.Length + (one is object[] a ? a.Length : 0);
    }
}

static unsafe partial class Native
{
    [DllImport("libc", EntryPoint = "labs")]
    static extern long Labs(long x);

    [DllImport("libc", EntryPoint = "getenv", CharSet = CharSet.Ansi)]
    static extern IntPtr Getenv(string name);

    [DllImport("libc", EntryPoint = "qsort")]
    static extern void Sort(int* v, nuint n, nuint size, delegate* unmanaged<int*, int*, int> compare);

    delegate int Comparing(int* a, int* b);

    [DllImport("libc", EntryPoint = "qsort")]
    static extern void SortBy(int* v, nuint n, nuint size, Comparing compare);

    [DllImport("libc", EntryPoint = "labs"), SuppressGCTransition]
    static extern long LabsQuick(long x);

    [UnmanagedCallersOnly]
    static int Compare(int* a, int* b) => *a - *b;

    static readonly Comparing down = (a, b) => *b - *a;

    public static long Calls(int n) => Labs(-n) + LabsQuick(n) + (Getenv("PATH") == 0 ? 1 : 0);

    public static long CallsBack(int n)
    {
        int* v = stackalloc int[] { 3, 1, n, 5, 2 };
        Sort(v, 5, sizeof(int), &Compare);
        SortBy(v, 5, sizeof(int), down);
        return v[0];
    }
}

static class Unusual
{
    sealed class Wrong(int n) : Exception
    {
        public int N => n;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Throws(int n)
    {
        try
        {
            if (n % 4 == 0)
                throw new Wrong(n);
            return n;
        }
        finally
        {
            done++;
        }
    }

    static long done;

    // Costs hundreds of thousands of instructions, so it is rare.
    public static long Exceptions(int n)
    {
        try
        {
            return Throws((n & 63) == 0 ? 4 : 1);
        }
        catch (Wrong w) when (w.N > 3)
        {
            return done;
        }
    }

    static readonly Func<int, long> emitted = Emit(), compiled = Compile(), collectible = Collectible();

    static Func<int, long> Emit()
    {
        DynamicMethod method = new("Emitted", typeof(long), [typeof(int)], typeof(Unusual).Module);
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, typeof(Unusual).GetMethod(nameof(Small), BindingFlags.Static | BindingFlags.NonPublic)!);
        il.Emit(OpCodes.Ret);
        return method.CreateDelegate<Func<int, long>>();
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Small(int n) => n + 1;

    static Func<int, long> Compile()
    {
        ParameterExpression n = Expression.Parameter(typeof(int));
        return Expression.Lambda<Func<int, long>>(Expression.Convert(Expression.Add(n, Expression.Constant(1)), typeof(long)), n).Compile();
    }

    static Func<int, long> Collectible()
    {
        TypeBuilder type = AssemblyBuilder.DefineDynamicAssembly(new("Gone"), AssemblyBuilderAccess.RunAndCollect).DefineDynamicModule("Gone").DefineType("Gone");
        MethodBuilder method = type.DefineMethod("Here", MethodAttributes.Public | MethodAttributes.Static, typeof(long), [typeof(int)]);
        ILGenerator il = method.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Call, typeof(Math).GetMethod(nameof(Math.Abs), [typeof(int)])!);
        il.Emit(OpCodes.Conv_I8);
        il.Emit(OpCodes.Ret);
        return type.CreateType().GetMethod("Here")!.CreateDelegate<Func<int, long>>();
    }

    public static long Dynamic(int n) => emitted(n) + compiled(n) + collectible(n);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static long Deep(int n) => n == 0 ? 0 : Deep(n - 1) + 1;

    public static long Recursion(int n) => Deep(n & 31);

    public static async Task<long> LaterAsync(int n)
    {
        if (n % 16 == 0)
            await Task.Yield();
        long sum = await Twice(n);
        foreach (long one in Numbers(5))
            sum += one;
        return sum;
    }

    static async ValueTask<long> Twice(int n)
    {
        await Task.CompletedTask;
        return n * 2L;
    }

    static IEnumerable<long> Numbers(int n)
    {
        for (int i = 0; i < n; i++)
            yield return i;
    }

    static class Late<T>
    {
        public static readonly object One = new T[3];
        [ThreadStatic] public static long Count;
    }

    public static long Statics(int n)
    {
        Late<string>.Count++;
        Late<long>.Count += n;
        lock (Late<string>.One)
            return Late<string>.Count + Late<long>.Count + Late<object>.One.GetHashCode() % 2;
    }
}

static class Library
{
    sealed record Order(int Id, string Name, double[] Prices);

    static readonly Regex words = new(@"(?<first>\w+)\s+(\d+)"), compiled = new(@"a+b*c?$", RegexOptions.Compiled);

    public static long Json(int n) =>
        n % 8 != 0 ? 0 : JsonSerializer.Deserialize<Order>(JsonSerializer.Serialize(new Order(n, "order", [1.5, n])))!.Id;

    public static long Regexes(int n) => words.Match("some words 12 and " + n).Length + (compiled.IsMatch("xxaaabbc") ? 1 : 0);

    public static long Collections(int n)
    {
        Dictionary<string, int> counts = [];
        List<int> sorted = [3, n, 1, 7, 5];
        foreach (string word in new[] { "a", "b", "a", "c" })
            CollectionsMarshal.GetValueRefOrAddDefault(counts, word, out _)++;
        sorted.Sort((a, b) => a.CompareTo(b));
        return counts.Values.Where(x => x > 0).Select(x => x * 2).OrderBy(x => -x).Sum() + sorted[0];
    }

    public static long Texts(int n)
    {
        StringBuilder text = new();
        text.Append(n).Append(' ').AppendFormat("{0:x}", n).Append($"{n,5}{DateTime.UnixEpoch:yyyy}");
        return text.ToString().Split(' ').Length + Encoding.UTF8.GetBytes("tëxt").Length + string.Join(',', 1, 2, n).Length;
    }
}
