// Makes the runtime look up the precompiled code of methods, so that it reports their names and addresses. Covers all assemblies
// of the application, and generic methods over a few types. Runs as a program, or in another program through DOTNET_STARTUP_HOOKS.
// Then it writes /proc/self/maps to the file PREPARE_MAPS, and the process ends. PREPARE_ASSEMBLIES: only names that begin with one
// of these words, in their order. PREPARE_METHODS: the maximal number of methods that are not generic, and four times the maximal
// number of generic instances. Most generic instances have to be compiled at run time.
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
    private static int left, prepared, refused;

    public static void Initialize()
    {
        var words = (Environment.GetEnvironmentVariable("PREPARE_ASSEMBLIES") ?? "").Split(' ', StringSplitOptions.RemoveEmptyEntries);

        var most = int.TryParse(Environment.GetEnvironmentVariable("PREPARE_METHODS"), out var limit) ? limit : int.MaxValue;
        var names = Names(words).ToList();
        var chosen = words.Length == 0 ? names : words.SelectMany(w => names.Where(n => n.StartsWith(w, StringComparison.Ordinal))).Distinct().ToList();
        foreach (var generic in new[] { false, true })
        {
            left = generic ? most / 4 : most;
            foreach (var name in chosen)
                PrepareAssembly(name, generic);
        }
        if (Environment.GetEnvironmentVariable("PREPARE_MAPS") is { } path)
            File.WriteAllText(path, File.ReadAllText("/proc/self/maps"));
        Console.WriteLine($"prepared {prepared}, refused {refused}");
        Environment.Exit(0);
    }

    // Assemblies that the host lists, and their references. For a single file the host lists nothing.
    private static IEnumerable<string> Names(string[] words)
    {
        var paths = (string?)AppContext.GetData("TRUSTED_PLATFORM_ASSEMBLIES") ?? "";
        var names = new Queue<string>(paths.Split(':', StringSplitOptions.RemoveEmptyEntries).Select(p => Path.GetFileNameWithoutExtension(p)!)
            .Concat(AppDomain.CurrentDomain.GetAssemblies().Select(a => a.GetName().Name!)).Concat(words).Append("System.Private.CoreLib"));
        var found = new SortedSet<string>(StringComparer.Ordinal);

        while (names.TryDequeue(out var name))
        {
            if (!found.Add(name))
                continue;
            try
            {
                foreach (var reference in Assembly.Load(new AssemblyName(name)).GetReferencedAssemblies())
                    names.Enqueue(reference.Name!);
            }
            catch (Exception)
            {
                // native, or not delivered
            }
        }
        return found;
    }

    private static void PrepareAssembly(string name, bool generic)
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
            if (type is null || left <= 0)
                continue;
            if (!type.IsGenericTypeDefinition)
                PrepareType(type, generic);
            else if (generic)
                foreach (var closed in Close(type.GetGenericArguments().Length, a => type.MakeGenericType(a)))
                    PrepareType(closed, generic);
        }
    }

    // Instantiations of a generic definition: all arguments alike; for two arguments also mixed pairs with a reference type.
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
                // violated constraints
            }
            if (closed is not null)
                yield return closed;
        }
    }

    private static void PrepareType(Type type, bool generic)
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
            if (left <= 0)
                return;
            if (method.IsAbstract || (method.MethodImplementationFlags & MethodImplAttributes.InternalCall) != 0)
                continue;
            if (method.IsGenericMethodDefinition && generic)
                foreach (var closed in Close(method.GetGenericArguments().Length, a => ((MethodInfo)method).MakeGenericMethod(a)))
                    Prepare(closed, type);
            else if (!method.IsGenericMethodDefinition && type.IsGenericType == generic)
                Prepare(method, type);
        }
    }

    private static void Prepare(MethodBase method, Type type)
    {
        left--;
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
