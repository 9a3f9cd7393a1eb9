using System.Globalization;
using System.Reflection;
using System.Text;
using Azure.Data.Tables;

namespace Existing;

/// <summary>A row as the dumps have it: the JSON of the Table service with full metadata, without what differs from account to account.</summary>
static class RowJson
{
    static readonly string[] OfTheAccount = ["PartitionKey", "RowKey", "Timestamp", "ETag", "odata.etag"];

    public static string Of(ITableEntity row)
    {
        var json = new StringBuilder($"{{\"PartitionKey\":{Text(row.PartitionKey)},\"RowKey\":{Text(row.RowKey)}");
        foreach (var (name, value) in PropertiesOf(row).Where(one => one.Value != null && !OfTheAccount.Contains(one.Key)))
        {
            if (TypeOf(value) is { } type) json.Append($",\"{name}@odata.type\":\"Edm.{type}\"");
            json.Append($",\"{name}\":{Value(value)}");
        }
        return json.Append('}').ToString();
    }

    static IEnumerable<KeyValuePair<string, object>> PropertiesOf(ITableEntity row) =>
        row as TableEntity
        ?? row.GetType().GetProperties(BindingFlags.Public | BindingFlags.Instance)
            .Select(property => KeyValuePair.Create(property.Name, property.GetValue(row)!));

    static string? TypeOf(object value) => value switch
    {
        long => "Int64",
        DateTimeOffset => "DateTime",
        Guid => "Guid",
        byte[] => "Binary",
        double number when !double.IsFinite(number) => "Double",
        _ => null,
    };

    static string Value(object value) => value switch
    {
        int number => number.ToString(CultureInfo.InvariantCulture),
        bool flag => flag ? "true" : "false",
        double number when !double.IsFinite(number) => Text(number.ToString(CultureInfo.InvariantCulture)),
        double number => number.ToString(number % 1 == 0 ? "0.0" : "R", CultureInfo.InvariantCulture),
        DateTimeOffset time => Text(time.UtcDateTime.ToString("yyyy-MM-ddTHH:mm:ss.fffffffZ", CultureInfo.InvariantCulture)),
        byte[] bytes => Text(Convert.ToBase64String(bytes)),
        _ => Text(value.ToString() ?? ""),
    };

    static string Text(string text)
    {
        var json = new StringBuilder("\"");
        foreach (var character in text)
            json.Append(character switch
            {
                '"' => "\\\"",
                '\\' => "\\\\",
                '\n' => "\\n",
                < ' ' => $"\\u{(int)character:x4}",
                _ => character,
            });
        return json.Append('"').ToString();
    }
}
