using Azure;
using Azure.Data.Tables;

namespace Existing;

/// <summary>PartitionKey "yyyyMMdd", RowKey "{DateTime.MaxValue.Ticks - ticks:D19}_{guid}": the newest first.</summary>
class LoggedRequest : ITableEntity
{
    public string PartitionKey { get; set; } = "";
    public string RowKey { get; set; } = "";
    public DateTimeOffset? Timestamp { get; set; }
    public ETag ETag { get; set; }
    public DateTimeOffset LoggedOn { get; set; }
    public Guid RequestId { get; set; }
    public string Level { get; set; } = "";
    public string Message { get; set; } = "";
    public string Path { get; set; } = "";
    public int StatusCode { get; set; }
    public double DurationMs { get; set; }
    public string? UserId { get; set; }
}

/// <summary>PartitionKey "user_{id}", RowKey "profile".</summary>
class Profile : ITableEntity
{
    public string PartitionKey { get; set; } = "";
    public string RowKey { get; set; } = "";
    public DateTimeOffset? Timestamp { get; set; }
    public ETag ETag { get; set; }
    public string UserId { get; set; } = "";
    public string UserName { get; set; } = "";
    public string NormalizedUserName { get; set; } = "";
    public string Email { get; set; } = "";
    public string NormalizedEmail { get; set; } = "";
    public bool EmailConfirmed { get; set; }
    public string PasswordHash { get; set; } = "";
    public Guid SecurityStamp { get; set; }
    public int AccessFailedCount { get; set; }
    public DateTimeOffset? LockoutEnd { get; set; }
    public DateTimeOffset CreatedOn { get; set; }
}

/// <summary>PartitionKey "user_{id}", RowKey "login_{provider}".</summary>
class Login : ITableEntity
{
    public string PartitionKey { get; set; } = "";
    public string RowKey { get; set; } = "";
    public DateTimeOffset? Timestamp { get; set; }
    public ETag ETag { get; set; }
    public string UserId { get; set; } = "";
    public string Provider { get; set; } = "";
    public string ProviderKey { get; set; } = "";
    public string? DisplayName { get; set; }
}

/// <summary>PartitionKey "user_{id}", RowKey "claim_{n}".</summary>
class Claim : ITableEntity
{
    public string PartitionKey { get; set; } = "";
    public string RowKey { get; set; } = "";
    public DateTimeOffset? Timestamp { get; set; }
    public ETag ETag { get; set; }
    public string UserId { get; set; } = "";
    public int Number { get; set; }
    public string Type { get; set; } = "";
    public string Value { get; set; } = "";
}

/// <summary>PartitionKey "email_{NormalizedEmail}" or "name_{NormalizedUserName}", RowKey "index".</summary>
class UserIndex : ITableEntity
{
    public string PartitionKey { get; set; } = "";
    public string RowKey { get; set; } = "";
    public DateTimeOffset? Timestamp { get; set; }
    public ETag ETag { get; set; }
    public string UserId { get; set; } = "";
}

/// <summary>PartitionKey "{Department}", RowKey "empid_{EmployeeId}".</summary>
class Employee : ITableEntity
{
    public string PartitionKey { get; set; } = "";
    public string RowKey { get; set; } = "";
    public DateTimeOffset? Timestamp { get; set; }
    public ETag ETag { get; set; }
    public string Department { get; set; } = "";
    public string EmployeeId { get; set; } = "";
    public string FirstName { get; set; } = "";
    public string LastName { get; set; } = "";
    public string Email { get; set; } = "";
    public int Age { get; set; }
}

/// <summary>
/// PartitionKey "{Department}", RowKey "{LastName}" with ids separated by commas; and PartitionKey "lastname_{LastName}", RowKey "index" with
/// a JSON list of "{Department}/{EmployeeId}".
/// </summary>
class EmployeeIds : ITableEntity
{
    public string PartitionKey { get; set; } = "";
    public string RowKey { get; set; } = "";
    public DateTimeOffset? Timestamp { get; set; }
    public ETag ETag { get; set; }
    public string? Ids { get; set; }
    public string? IdList { get; set; }
}

sealed class OtherTables(uint seed)
{
    public const int MissingEmail = 500;
    static readonly string[] Levels = ["Information", "Information", "Information", "Warning", "Error"];
    static readonly string[] Paths = ["/", "/orders", "/orders/{id}", "/customers/{id}", "/health"];
    static readonly string[] Names = ["Jones", "O'Brien", "Müller", "Smith", "Cruz", "Nuñez", "Đặng", "Smith-Jones", "Young", "Adams"];
    static readonly string[] FirstNames = ["Ann", "Zoë", "José", "Ben", "Søren", "June"];
    static readonly string[] Departments = ["Sales", "Marketing", "Human Resources", "IT"];
    readonly Draw draw = new(seed);

    public IEnumerable<ITableEntity> RequestLog(int count)
    {
        var first = new DateTimeOffset(2024, 2, 27, 0, 0, 0, TimeSpan.Zero);
        var step = TimeSpan.FromDays(5).Ticks / count;
        for (var number = 0; number < count; number++)
        {
            var time = first.AddTicks(number * step + draw.Below((int)Math.Min(step, int.MaxValue), "time", number));
            var id = draw.Guid("request", number);
            var level = draw.Pick(Levels, "level", number);
            yield return new LoggedRequest
            {
                PartitionKey = time.ToString("yyyyMMdd"),
                RowKey = $"{DateTime.MaxValue.Ticks - time.Ticks:D19}_{id}",
                LoggedOn = time,
                RequestId = id,
                Level = level,
                Message = level == "Error" ? "Timeout of \"payments\"\n  at Shop.Pay()" : $"Request {number} finished",
                Path = draw.Pick(Paths, "path", number),
                StatusCode = level == "Error" ? 500 : 200,
                DurationMs = draw.Below(4_000, "duration", number) / 4.0,
                UserId = draw.OneIn(3, "anonymous", number) ? null : $"{draw.Below(1_000, "user", number) + 1:D6}",
            };
        }
    }

    /// <summary>The index row of the email of user 500 is missing, and that of ghost@contoso.com names a user who does not exist.</summary>
    public IEnumerable<ITableEntity> Identity(int users)
    {
        for (var number = 1; number <= users; number++)
        {
            var id = $"{number:D6}";
            var name = $"{draw.Pick(FirstNames, "first", number)}.{draw.Pick(Names, "last", number).Replace("'", "")}{number}";
            var email = $"User{number}@Contoso.com";
            yield return new Profile
            {
                PartitionKey = $"user_{id}",
                RowKey = "profile",
                UserId = id,
                UserName = name,
                NormalizedUserName = name.ToUpperInvariant(),
                Email = email,
                NormalizedEmail = email.ToUpperInvariant(),
                EmailConfirmed = !draw.OneIn(5, "confirmed", number),
                PasswordHash = Convert.ToBase64String(draw.Bytes(24, "password", number)),
                SecurityStamp = draw.Guid("stamp", number),
                AccessFailedCount = draw.Below(4, "failed", number),
                LockoutEnd = draw.OneIn(20, "locked", number) ? DateTimeOffset.MaxValue : null,
                CreatedOn = new DateTimeOffset(2019, 1, 1, 0, 0, 0, TimeSpan.Zero).AddHours(number).AddTicks(draw.Below(10_000_000, "ticks", number)),
            };
            if (number % 2 == 0) yield return LoginOf(id, "google", draw.Number("google", number), null);
            if (number % 5 == 0) yield return LoginOf(id, "microsoft", draw.Number("microsoft", number), name);
            for (var claim = 0; claim < number % 3; claim++)
                yield return new Claim
                {
                    PartitionKey = $"user_{id}",
                    RowKey = $"claim_{claim}",
                    UserId = id,
                    Number = claim,
                    Type = claim == 0 ? "role" : "department",
                    Value = claim == 0 ? "reader" : draw.Pick(Departments, "department", number),
                };
            if (number != MissingEmail) yield return IndexOf($"email_{email.ToUpperInvariant()}", id);
            yield return IndexOf($"name_{name.ToUpperInvariant()}", id);
        }
        yield return IndexOf("email_GHOST@CONTOSO.COM", "009999");
    }

    static Login LoginOf(string id, string provider, uint key, string? name) => new()
    {
        PartitionKey = $"user_{id}",
        RowKey = $"login_{provider}",
        UserId = id,
        Provider = provider,
        ProviderKey = key.ToString(),
        DisplayName = name,
    };

    static UserIndex IndexOf(string partition, string id) => new() { PartitionKey = partition, RowKey = "index", UserId = id };

    public IReadOnlyList<Employee> Employees(int count) =>
    [
        .. Enumerable.Range(1, count).Select(number =>
        {
            var department = draw.Pick(Departments, "employed", number);
            return new Employee
            {
                PartitionKey = department,
                RowKey = $"empid_{number:D6}",
                Department = department,
                EmployeeId = $"{number:D6}",
                FirstName = draw.Pick(FirstNames, "given", number),
                LastName = draw.Pick(Names, "family", number),
                Email = $"employee{number}@contoso.com",
                Age = 18 + draw.Below(50, "age", number),
            };
        }),
    ];

    public IEnumerable<ITableEntity> EmployeeIndex(int count)
    {
        var employees = Employees(count);
        foreach (var group in employees.GroupBy(one => (one.Department, one.LastName)))
            yield return new EmployeeIds
            {
                PartitionKey = group.Key.Department,
                RowKey = group.Key.LastName,
                Ids = string.Join(",", group.Select(one => one.EmployeeId)),
            };
        foreach (var group in employees.GroupBy(one => one.LastName))
            yield return new EmployeeIds
            {
                PartitionKey = $"lastname_{group.Key}",
                RowKey = "index",
                IdList = $"[{string.Join(",", group.Select(one => $"\"{one.Department}/{one.EmployeeId}\""))}]",
            };
    }
}
