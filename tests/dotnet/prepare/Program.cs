// Has the runtime look up the precompiled code of as many methods as it knows, so that it reports their names and addresses: those
// of all assemblies that the application came with, generic ones over a few types. Run as a program, or in any other one as
// DOTNET_STARTUP_HOOKS. Then /proc/self/maps is written to the file that PREPARE_MAPS names, and the process ends.
// PREPARE_ASSEMBLIES: only those whose name begins with one of these words; PREPARE_SECONDS: the time it may take.
using System.Diagnostics;
using System.Reflection;
using System.Runtime.CompilerServices;

public static class Program
{
    public static void Main() => StartupHook.Initialize();
}

internal static class StartupHook
{
    private const BindingFlags All = BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.Static | BindingFlags.Instance |
                                     BindingFlags.DeclaredOnly;
    private static readonly Type[] Arguments = [typeof(object), typeof(int), typeof(byte), typeof(char), typeof(bool), typeof(long), typeof(Guid)];
    private static readonly Stopwatch Clock = Stopwatch.StartNew();
    private static double seconds = 60;
    private static int prepared, refused;

    public static void Initialize()
    {
        var words = (Environment.GetEnvironmentVariable("PREPARE_ASSEMBLIES") ?? "").Split(' ', StringSplitOptions.RemoveEmptyEntries);

        if (double.TryParse(Environment.GetEnvironmentVariable("PREPARE_SECONDS"), out var limit))
            seconds = limit;
        foreach (var name in Names().Where(name => words.Length == 0 || words.Any(word => name.StartsWith(word, StringComparison.Ordinal))))
            PrepareAssembly(name);
        if (Environment.GetEnvironmentVariable("PREPARE_MAPS") is { } path)
            File.WriteAllText(path, File.ReadAllText("/proc/self/maps"));
        Console.WriteLine($"prepared {prepared}, refused {refused}, {Clock.Elapsed.TotalSeconds:F1} s");
        Environment.Exit(0);
    }

    private static IEnumerable<string> Names()
    {
        var paths = (string?)AppContext.GetData("TRUSTED_PLATFORM_ASSEMBLIES") ?? "";
        var loaded = AppDomain.CurrentDomain.GetAssemblies().Select(a => a.GetName().Name!);

        // In a single file only the application's dependencies tell what there is.
        return paths.Split(':', StringSplitOptions.RemoveEmptyEntries).Select(p => Path.GetFileNameWithoutExtension(p))
            .Concat(loaded).Append("System.Private.CoreLib").Distinct().OrderBy(name => name, StringComparer.Ordinal);
    }

    private static void PrepareAssembly(string name)
    {
        Type?[] types;

        try
        {
            types = Assembly.Load(new AssemblyName(name)).GetTypes();
        }
        catch (ReflectionTypeLoadException e)
        {
            types = e.Types;
        }
        catch (Exception)
        {
            return;
        }
        foreach (var type in types)
        {
            if (type is null || type.IsInterface && !type.IsGenericTypeDefinition && type.GetMethods(All).All(m => m.IsAbstract))
                continue;
            if (type.IsGenericTypeDefinition)
                foreach (var closed in Close(type.GetGenericArguments().Length, a => type.MakeGenericType(a)))
                    PrepareType(closed);
            else
                PrepareType(type);
        }
    }

    // What can be made of a generic definition: all arguments alike, and for two also the mixed pairs with a reference type.
    private static IEnumerable<T> Close<T>(int n, Func<Type[], T> make) where T : class
    {
        var lists = Arguments.Select(a => Enumerable.Repeat(a, n).ToArray()).ToList();

        if (n == 2)
            foreach (var a in Arguments.Skip(1))
            {
                lists.Add([typeof(object), a]);
                lists.Add([a, typeof(object)]);
            }
        foreach (var list in lists)
        {
            T? closed = null;

            try
            {
                closed = make(list);
            }
            catch (Exception)
            {
                // constraints
            }
            if (closed is not null)
                yield return closed;
        }
    }

    private static void PrepareType(Type type)
    {
        MethodBase[] methods;

        try
        {
            methods = [.. type.GetMethods(All), .. type.GetConstructors(All)];
        }
        catch (Exception)
        {
            return;
        }
        foreach (var method in methods)
        {
            if (Clock.Elapsed.TotalSeconds > seconds)
                return;
            if (method.IsAbstract || (method.MethodImplementationFlags & MethodImplAttributes.InternalCall) != 0)
                continue;
            if (method.IsGenericMethodDefinition)
                foreach (var closed in Close(method.GetGenericArguments().Length, a => ((MethodInfo)method).MakeGenericMethod(a)))
                    Prepare(closed, type);
            else
                Prepare(method, type);
        }
    }

    private static void Prepare(MethodBase method, Type type)
    {
        try
        {
            var arguments = type.IsGenericType ? type.GetGenericArguments().ToList() : [];

            if (method.IsGenericMethod)
                arguments.AddRange(method.GetGenericArguments());
            RuntimeHelpers.PrepareMethod(method.MethodHandle, arguments.Count > 0 ? arguments.Select(a => a.TypeHandle).ToArray() : null);
            prepared++;
        }
        catch (Exception)
        {
            refused++;
        }
    }
}
