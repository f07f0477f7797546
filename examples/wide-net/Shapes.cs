using System.Runtime.CompilerServices;

namespace WideNet;

/// <summary>Signatures of every kind that metadata can describe.</summary>
internal static unsafe class ShapePhases
{
    private sealed class Explicit : IShape, IShape<int>, IShape<double>, IComparable<Explicit>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        long IShape.Area(int scale) => scale * 3;
        long IShape.Edges => 4;
        [MethodImpl(MethodImplOptions.NoInlining)]
        int IShape<int>.Area(int scale) => scale + 5;
        [MethodImpl(MethodImplOptions.NoInlining)]
        double IShape<double>.Area(double scale) => Math.Sqrt(scale);
        [MethodImpl(MethodImplOptions.NoInlining)]
        int IComparable<Explicit>.CompareTo(Explicit? other) => other is null ? 1 : 0;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long ExplicitInterfaces(int seed)
    {
        object shape = new Explicit();
        double sum = 0;
        for (int i = 0; i < 500; i++)
            sum += ((IShape)shape).Area(i) + ((IShape<int>)shape).Area(seed) + ((IShape<double>)shape).Area(i) +
                   ((IShape<int>)shape).Default(i) + ((IComparable<Explicit>)shape).CompareTo(null);
        return (long)sum;
    }

    private readonly struct Money(decimal amount)
    {
        public readonly decimal Amount = amount;
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static Money operator +(in Money a, in Money b) => new(a.Amount + b.Amount);
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static Money operator checked -(Money a, Money b) => new(a.Amount - b.Amount);
        public static Money operator -(Money a, Money b) => new(a.Amount - b.Amount);
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static implicit operator Money(int amount) => new(amount);
        [MethodImpl(MethodImplOptions.NoInlining)]
        public static explicit operator long(Money money) => (long)money.Amount;
        public static bool operator true(Money money) => money.Amount != 0;
        public static bool operator false(Money money) => money.Amount == 0;
        public Money this[int part, string unit] => new(Amount / part + unit.Length);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Operators(int seed)
    {
        Money sum = seed;
        for (int i = 1; i < 50; i++)
            if (sum)
                sum = checked(sum + Part(i) - (Money)2)[i & 1 | 1, "eur"];
        return (long)sum;
    }

    private static Money Part(int amount) => amount;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Arrays(int seed)
    {
        int[,] grid = new int[20, 20];
        string?[,,] cube = new string[4, 4, 4];
        int[][,] jagged = [grid, new int[2, 3]];
        Fill(grid, seed);
        cube[1, 2, 3] = "x";
        return Total(grid) + Lengths(cube, jagged) + Part<Guid[]>([[], new Guid[3]]);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Fill(int[,] grid, int seed)
    {
        for (int y = 0; y < grid.GetLength(0); y++)
            for (int x = 0; x < grid.GetLength(1); x++)
                grid[y, x] = x * y + seed;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Total(int[,] grid)
    {
        long sum = 0;
        foreach (int value in grid)
            sum += value;
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Lengths(string?[,,] cube, int[][,] jagged)
    {
        long sum = 0;
        foreach (string? text in cube)
            sum += text?.Length ?? 0;
        return sum + jagged.Sum(grid => grid.Length);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Part<T>(T[] arrays) => arrays.LongLength;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long ByRefs(int seed)
    {
        Span<int> numbers = stackalloc int[64];
        for (int i = 0; i < 64; i++)
            numbers[i] = (i * 29 + seed) & 63;
        for (int i = 0; i < 20; i++)
        {
            Swap(ref numbers[i], ref Largest(numbers));
            Measure(in numbers[i], out long square);
            numbers[i] = (int)(square & 63);
        }
        return Sum(numbers);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Swap<T>(ref T a, ref T b) => (a, b) = (b, a);
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Measure(in int a, out long square) => square = (long)a * a;
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static ref int Largest(Span<int> numbers)
    {
        ref int largest = ref numbers[0];
        foreach (ref int number in numbers)
            if (number > largest)
                largest = ref number;
        return ref largest;
    }
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Sum(ReadOnlySpan<int> numbers)
    {
        long sum = 0;
        foreach (ref readonly int number in numbers)
            sum += number;
        return sum;
    }

    private struct Cell
    {
        public Cell* Next;
        public nint Value;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long Pointers(int seed)
    {
        Cell* cells = stackalloc Cell[100];
        for (int i = 0; i < 100; i++)
            cells[i] = new Cell { Next = &cells[(i * 37 + 11) % 100], Value = i + seed };
        void* any = cells;
        byte** bytes = (byte**)&any;
        return Chase(cells, 400) + Chars(bytes, null) + Half(&seed);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static nint Chase(Cell* cell, int steps)
    {
        nint sum = 0;
        for (; steps > 0; steps--, cell = cell->Next)
            sum += cell->Value;
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Chars(byte** bytes, char* none) => **bytes + (none is null ? 1 : 0);
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Half<T>(T* value) where T : unmanaged => sizeof(T) / 2 + *(byte*)value;

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static long FunctionPointers(int seed)
    {
        delegate*<int, ref long, void> add = &Add;
        long sum = 0;
        for (int i = 0; i < 500; i++)
            add(i + seed, ref sum);
        return sum + Twice(&Square, seed) + Twice(&Cube, seed);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static void Add(int n, ref long sum) => sum += n % 7;
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Square(int n) => (long)n * n;
    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Cube(int n) => (long)n * n * n;

    [MethodImpl(MethodImplOptions.NoInlining)]
    private static long Twice(delegate*<int, long> f, int n)
    {
        long sum = 0;
        for (int i = 0; i < 300; i++)
            sum += f(n) + f(i);
        return sum;
    }
}
