namespace WideNet;

internal static class Phases
{
    public static Phase[] All { get; } =
    [
        new(JsonPhases.Reflection), new(JsonPhases.SourceGenerated),
        new(RegexPhases.Interpreted), new(RegexPhases.Compiled), new(RegexPhases.SourceGenerated),
        new(LinqPhases.Objects), new(LinqPhases.Expressions),
        new(GenericPhases.Values), new(GenericPhases.References), new(GenericPhases.StaticAbstract), new(GenericPhases.VirtualMethods),
        new(AsyncPhases.ValueTasks), new(AsyncPhases.AsyncStreams), new(AsyncPhases.Iterators),
        new(FunctionPhases.Lambdas), new(FunctionPhases.LocalFunctions),
        new(ShapePhases.ExplicitInterfaces), new(ShapePhases.Operators), new(ShapePhases.Arrays), new(ShapePhases.ByRefs),
        new(ShapePhases.Pointers), new(ShapePhases.FunctionPointers), new(Größen.Übermaß),
        new(DispatchPhases.Interfaces), new(DispatchPhases.Delegates),
        new(NativePhases.Invoke), new(NativePhases.Callbacks), new(NativePhases.UnmanagedCallers),
        new(DynamicPhases.DynamicMethods), new(DynamicPhases.ExpressionTrees), new(DynamicPhases.Binder),
        new(EmitPhases.Run), new(EmitPhases.RunAndCollect), new(CollectiblePhases.LoadContexts),
        new(TieringPhases.LateHot), new(TieringPhases.OnStackReplacement), new(ExceptionPhases.ThrowAndCatch),
    ];
}
