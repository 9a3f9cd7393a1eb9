using Azure;
using Azure.Data.Tables;

namespace Existing;

enum CustomerTier { Standard, Silver, Gold }

enum OrderStatus { Pending, Paid, Shipped, Cancelled }

/// <summary>PartitionKey "C-{customer:D6}", RowKey "customer".</summary>
class Customer : ITableEntity
{
    public string PartitionKey { get; set; } = "";
    public string RowKey { get; set; } = "";
    public DateTimeOffset? Timestamp { get; set; }
    public ETag ETag { get; set; }
    public string Name { get; set; } = "";
    public string Email { get; set; } = "";
    public string? Phone { get; set; }
    public CustomerTier Tier { get; set; }
    public long LoyaltyPoints { get; set; }
    public double Discount { get; set; }
    public double? Rating { get; set; }
    public bool IsActive { get; set; }
    public int OrderCount { get; set; }
    public DateTimeOffset CreatedOn { get; set; }
    public DateTimeOffset? LastLoginOn { get; set; }
    public Guid ExternalId { get; set; }
    public byte[]? Thumbnail { get; set; }
    public string Preferences { get; set; } = "";
    public bool? LegacyFlag { get; set; }
}

/// <summary>PartitionKey "C-{customer:D6}", RowKey "order-{order:D8}".</summary>
class Order : ITableEntity
{
    public string PartitionKey { get; set; } = "";
    public string RowKey { get; set; } = "";
    public DateTimeOffset? Timestamp { get; set; }
    public ETag ETag { get; set; }
    public int OrderNo { get; set; }
    public OrderStatus Status { get; set; }
    public long TotalCents { get; set; }
    public string Currency { get; set; } = "";
    public double Discount { get; set; }
    public bool IsGift { get; set; }
    public int ItemCount { get; set; }
    public DateTimeOffset CreatedOn { get; set; }
    public DateTimeOffset? ShippedOn { get; set; }
    public Guid ExternalId { get; set; }
    public string? Note { get; set; }
    public string ShippingAddress { get; set; } = "";
    public bool? LegacyFlag { get; set; }
}

/// <summary>PartitionKey "C-{customer:D6}", RowKey "line-{order:D8}-{line:D2}".</summary>
class OrderLine : ITableEntity
{
    public string PartitionKey { get; set; } = "";
    public string RowKey { get; set; } = "";
    public DateTimeOffset? Timestamp { get; set; }
    public ETag ETag { get; set; }
    public int OrderNo { get; set; }
    public int LineNo { get; set; }
    public string Sku { get; set; } = "";
    public int Quantity { get; set; }
    public long UnitCents { get; set; }
    public double Weight { get; set; }
    public bool? Backordered { get; set; }
}

/// <summary>The rows of a shop: customers with their orders and lines, by one rule for any number of them.</summary>
sealed class ShopData(uint seed)
{
    /// <summary>Beyond what a double holds exactly.</summary>
    const long HugePoints = 9_007_199_254_740_993;
    const string Letters = "ABCDEFGHJKLMNPQRSTUVWXYZ";
    /// <summary>Both of its doubles become others than numbers.</summary>
    const int OddCustomer = 13;
    static readonly string[] FirstNames = ["Ann", "Zoë", "José", "Ben", "Søren", "June", "Łukasz", "Mary Ann", "李", "O\u0301na"];
    static readonly string[] LastNames = ["Jones", "O'Brien", "Müller", "Smith-Jones", "de la Cruz", "Đặng", "\"Mac\" Neil", "Nuñez"];
    static readonly string[] Languages = ["en", "de", "fr", "pt-BR"];
    static readonly string[] Cities = ["Berlin", "São Paulo", "Zürich", "Reykjavík", "Portland, OR"];
    static readonly string[] Notes = ["", "Leave at the door.", "2nd floor,\nring twice", " gift 🎁 ", "50% \\ \"fragile\""];
    static readonly string[] Currencies = ["EUR", "USD", "JPY"];
    static readonly DateTimeOffset Opening = new(2016, 2, 29, 8, 0, 0, TimeSpan.Zero);
    readonly Draw draw = new(seed);

    public static string PartitionOf(int customer) => $"C-{customer:D6}";

    public static string OrderRow(int order) => $"order-{order:D8}";

    /// <summary>A tenth of the rows are customers, six tenths orders, and three tenths lines.</summary>
    public IEnumerable<ITableEntity> Rows(int count)
    {
        var (customers, orders) = (count / 10, count * 6 / 10);
        for (var number = 1; number <= customers; number++) yield return CustomerOf(number);
        for (var number = 1; number <= orders; number++)
        {
            // Few customers have many orders.
            var customer = 1 + draw.Below(1 + draw.Below(customers, "reach", number), "customer", number);
            yield return OrderOf(customer, number);
            if (number % 4 != 0) continue;
            yield return LineOf(customer, number, 1);
            yield return LineOf(customer, number, 2);
        }
    }

    /// <summary>NaN and Infinity, which earlier libraries of .NET wrote. Azure.Data.Tables reads them, and writes them only as text with a type.</summary>
    public static TableEntity OddNumbers => new(PartitionOf(OddCustomer), "customer")
    {
        ["Discount"] = "NaN",
        ["Discount@odata.type"] = "Edm.Double",
        ["Rating"] = "Infinity",
        ["Rating@odata.type"] = "Edm.Double",
    };

    public Customer CustomerOf(int number)
    {
        var first = draw.Pick(FirstNames, "first", number);
        var created = TimeOf("created", number, minutesBetween: 120);
        return new Customer
        {
            PartitionKey = PartitionOf(number),
            RowKey = "customer",
            Name = $"{first} {draw.Pick(LastNames, "last", number)}",
            Email = $"customer{number}@{(draw.OneIn(3, "domain", number) ? "Contoso.com" : "example.org")}",
            Phone = draw.OneIn(3, "phone", number) ? null : $"+49 30 {draw.Below(1_000_000, "digits", number):D6}",
            Tier = (CustomerTier)draw.Below(3, "tier", number),
            LoyaltyPoints = number % 10 == 0 ? HugePoints + number : draw.Below(100_000, "points", number),
            Discount = draw.Below(41, "discount", number) / 4.0,
            Rating = number != OddCustomer && draw.OneIn(2, "rated", number) ? null : draw.Below(51, "rating", number) / 10.0,
            IsActive = !draw.OneIn(8, "active", number),
            OrderCount = draw.Below(40, "orders", number),
            CreatedOn = created,
            LastLoginOn = draw.OneIn(4, "login", number) ? null : created.AddTicks(draw.Number("logged in", number)),
            ExternalId = draw.Guid("customer id", number),
            Thumbnail = draw.OneIn(2, "thumbnail", number) ? null : draw.Bytes(1 + number % 12, "thumbnail bytes", number),
            Preferences = $$"""{"language":"{{draw.Pick(Languages, "language", number)}}","newsletter":{{(draw.OneIn(2, "newsletter", number) ? "true" : "false")}},"tags":["a","b"]}""",
            LegacyFlag = number % 7 == 0 ? draw.OneIn(2, "legacy", number) : null,
        };
    }

    public Order OrderOf(int customer, int number)
    {
        var created = TimeOf("ordered", number, minutesBetween: 25);
        var status = (OrderStatus)draw.Below(4, "status", number);
        return new Order
        {
            PartitionKey = PartitionOf(customer),
            RowKey = OrderRow(number),
            OrderNo = number,
            Status = status,
            TotalCents = number % 1000 == 0 ? HugePoints * 100 + number : draw.Below(500_000, "total", number),
            Currency = draw.Pick(Currencies, "currency", number),
            Discount = draw.Below(41, "order discount", number) / 4.0,
            IsGift = draw.OneIn(10, "gift", number),
            ItemCount = 1 + draw.Below(9, "items", number),
            CreatedOn = created,
            ShippedOn = status == OrderStatus.Shipped ? created.AddTicks(draw.Number("shipped", number)) : null,
            ExternalId = draw.Guid("order id", number),
            Note = draw.OneIn(3, "noted", number) ? draw.Pick(Notes, "note", number) : null,
            ShippingAddress = $$"""{"city":"{{draw.Pick(Cities, "city", number)}}","zip":"{{draw.Below(100_000, "zip", number):D5}}"}""",
            LegacyFlag = number % 50 == 0 ? draw.OneIn(2, "legacy order", number) : null,
        };
    }

    public OrderLine LineOf(int customer, int order, int line)
    {
        var number = order * 100 + line;
        return new OrderLine
        {
            PartitionKey = PartitionOf(customer),
            RowKey = $"line-{order:D8}-{line:D2}",
            OrderNo = order,
            LineNo = line,
            Sku = $"{Letters[draw.Below(Letters.Length, "letter", number)]}-{draw.Below(1_000, "sku", number):D3}",
            Quantity = 1 + draw.Below(5, "quantity", number),
            UnitCents = draw.Below(20_000, "unit", number),
            Weight = draw.Below(2_000, "weight", number) / 1_000.0,
            Backordered = draw.OneIn(20, "backordered", number) ? true : null,
        };
    }

    /// <summary>Has seven digits below the second; of one order number in sixteen, three, and of another, none.</summary>
    DateTimeOffset TimeOf(string purpose, int number, int minutesBetween)
    {
        var ticks = draw.Below(10_000_000, purpose, number);
        var kept = (number % 16) switch { 0 => 0, 1 => ticks / 10_000 * 10_000, _ => ticks };
        return Opening.AddMinutes((double)number * minutesBetween).AddTicks(kept);
    }
}
