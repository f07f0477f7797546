namespace WebApi;

/// <summary>Memory that is never freed, up to a limit, so that an experiment does not exhaust the machine.</summary>
internal static class Memory
{
    private const long BytesMax = 512L << 20;
    private static readonly List<byte[]> Kept = [];
    private static long keptBytes;

    public static string Leak(int kb)
    {
        int bytes = Math.Clamp(kb, 1, 65536) << 10;
        lock (Kept)
        {
            if (keptBytes + bytes > BytesMax)
                return $"full: {keptBytes >> 20} MB are kept, that is the limit\n";
            var block = new byte[bytes];
            Array.Fill(block, (byte)1);
            Kept.Add(block);
            keptBytes += bytes;
            return $"{keptBytes >> 20} MB are kept in {Kept.Count} blocks\n";
        }
    }
}
