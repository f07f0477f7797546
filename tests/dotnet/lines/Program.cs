// Methods of many shapes. Each prints its place like System.Diagnostics.StackTrace: "frame TOKEN IL NATIVE FILE:LINE". Also prints
// all points of the program's own PDB: "point TOKEN IL FILE:LINE". With an argument: burns for that many seconds in Burn.
using System.Diagnostics;
using System.Reflection;
using System.Reflection.Metadata;
using System.Reflection.Metadata.Ecma335;
using System.Reflection.PortableExecutable;
using System.Runtime.CompilerServices;

if (args.Length > 0)
    return Burning.Burn(double.Parse(args[0])) > 0 ? 0 : 1;
Places.Plain(3);
Places.Generic<string>("a", 1);
Places.Generic(2, 1);
Places.Lambda();
foreach (var _ in Places.Iterator()) { }
Places.Async().Wait();
Places.Catches();
Places.Elsewhere();
new Places.Inner<int>().Virtual(7);
Points.All();
return 0;

static class Burning
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    public static double Burn(double seconds)
    {
        var until = Stopwatch.StartNew();
        double sum = 1;
        while (until.Elapsed.TotalSeconds < seconds)
        {
            for (int i = 1; i < 100000; i++)
                sum += Step(sum, i);
        }
        return sum;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static double Step(double sum, int i)
    {
        double x = sum / i;
        for (int k = 0; k < 20; k++)
            x = x * 0.5 + k; // the line that burns
        return x > 1e300 ? 0 : x;
    }
}

static class Places
{
    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Here()
    {
        foreach (var frame in new StackTrace(true).GetFrames())
        {
            var method = frame.GetMethod();
            if (method?.Module != typeof(Places).Module || frame.GetFileLineNumber() == 0)
                continue;
            Console.WriteLine($"frame {method.MetadataToken:x} {frame.GetILOffset():x} {frame.GetNativeOffset():x} " +
                              $"{Path.GetFileName(frame.GetFileName())}:{frame.GetFileLineNumber()}");
        }
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static int Plain(int n)
    {
        if (n > 0)
        {
            int x = Plain(n - 1);
            return x + 1;
        }
        Here();
        return n;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    public static T Generic<T>(T x, int n)
    {
        if (n > 0)
            return Generic(x, n - 1);

        Here();
        return x;
    }

    public static void Lambda()
    {
        int outer = 5;
        Func<int, int> f = x =>
        {
            x += outer;

            Here();
            return x;
        };
        Local(f(1));

        void Local(int y)
        {
            Here();
            outer += y;
        }
    }

    public static IEnumerable<int> Iterator()
    {
        for (int i = 0; i < 2; i++)
        {
            Here();
            yield return i;
        }
    }

    public static async Task Async()
    {
        Here();
        await Task.Yield();
        await Task.Delay(1);
        Here();
    }

    public static void Catches()
    {
        try
        {
            throw new InvalidOperationException();
        }
        catch (InvalidOperationException) when (Filter())
        {
            Here();
        }
        finally
        {
            Here();
        }
    }

    static bool Filter()
    {
        Here();
        return true;
    }

    public static void Elsewhere()
    {
        Here();
#line 1234 "another folder/Template.cshtml"
        Here();
#line hidden
        Here();
#line 70000 "another folder/Template.cshtml"
        Here();
#line default
        Here();
    }

    public class Inner<T>
    {
        [MethodImpl(MethodImplOptions.NoInlining)]
        public virtual void Virtual(T x)
        {
            Here();
            Console.Out.Flush();
            Here();
        }
    }
}

static class Points
{
    public static void All()
    {
        using var file = File.OpenRead(typeof(Points).Assembly.Location);
        using var image = new PEReader(file);
        image.TryOpenAssociatedPortablePdb(typeof(Points).Assembly.Location, path => File.OpenRead(path), out var provider, out _);
        var pdb = provider!.GetMetadataReader();
        foreach (var handle in pdb.MethodDebugInformation)
        {
            var token = MetadataTokens.GetToken(handle.ToDefinitionHandle());
            foreach (var point in pdb.GetMethodDebugInformation(handle).GetSequencePoints())
                if (!point.IsHidden)
                    Console.WriteLine($"point {token:x} {point.Offset:x} 0 " +
                                      $"{Path.GetFileName(pdb.GetString(pdb.GetDocument(point.Document).Name))}:{point.StartLine}");
        }
        provider.Dispose();
    }
}
