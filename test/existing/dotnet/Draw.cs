namespace Existing;

/// <summary>Values that depend on the seed alone: the rule is short enough for a program in another language to draw the same ones.</summary>
sealed class Draw(uint seed)
{
    const uint Offset = 2166136261, Prime = 16777619;

    /// <summary>FNV-1a of the seed, a purpose and a number, mixed by the last step of MurmurHash3.</summary>
    public uint Number(string purpose, int number)
    {
        unchecked
        {
            var hash = Offset;
            foreach (var character in $"{seed}:{purpose}:{number}") hash = (hash ^ character) * Prime;
            hash = (hash ^ (hash >> 16)) * 0x85ebca6b;
            hash = (hash ^ (hash >> 13)) * 0xc2b2ae35;
            return hash ^ (hash >> 16);
        }
    }

    public int Below(int bound, string purpose, int number) => (int)(Number(purpose, number) % (uint)bound);

    public bool OneIn(int count, string purpose, int number) => Below(count, purpose, number) == 0;

    public T Pick<T>(IReadOnlyList<T> from, string purpose, int number) => from[Below(from.Count, purpose, number)];

    /// <summary>A version 4 identifier, of which 32 bits are drawn and the others follow from the purpose, so that dumps stay small.</summary>
    public Guid Guid(string purpose, int number)
    {
        var tail = Number(purpose, -1).ToString("x8");
        return System.Guid.Parse($"{Number(purpose, number):x8}-{tail[..4]}-4{tail[4..7]}-8{tail[1..4]}-{tail}0000");
    }

    public byte[] Bytes(int length, string purpose, int number) =>
        [.. Enumerable.Range(0, length).Select(index => (byte)(Number(purpose, number) >> (index % 4 * 8) ^ (uint)index))];
}
