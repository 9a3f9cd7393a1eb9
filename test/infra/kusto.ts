import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runInThisContext } from 'node:vm';

/** Parses queries with the parser of Log Analytics, against the tables of Application Insights. */

/** The columns in use: https://learn.microsoft.com/azure/azure-monitor/reference/tables-category. */
const COMMON = 'TimeGenerated: datetime, OperationId: string, OperationName: string, Properties: dynamic, Type: string';
const TABLES = {
  AppRequests: `${COMMON}, Name: string, Url: string, ResultCode: string, Success: bool, DurationMs: real, ItemCount: int`,
  AppDependencies: `${COMMON}, Name: string, ResultCode: string, Success: bool, DurationMs: real, ItemCount: int`,
  AppTraces: `${COMMON}, Message: string, SeverityLevel: int, ItemCount: int`,
  AppExceptions: `${COMMON}, OuterMessage: string, SeverityLevel: int, ItemCount: int`,
  AppMetrics: `${COMMON}, Name: string, Sum: real, Min: real, Max: real, ItemCount: int`,
  AzureMetrics: 'TimeGenerated: datetime, ResourceProvider: string, MetricName: string, Total: real',
};
/** Every workspace has these. */
const OWN_TABLES = { _LogOperation: 'TimeGenerated: datetime, Category: string, Operation: string, Detail: string' };

/** The part of the library in use. The library consists of scripts that define globals. */
interface Kusto {
  readonly Language: {
    readonly Symbols: {
      readonly TableSymbol: { readonly $ctor7: new (name: string, schema: string, description: null) => object };
      readonly DatabaseSymbol: { readonly ctor: new (name: string, members: readonly object[]) => object };
    };
    readonly GlobalState: { readonly Default: { WithDatabase(database: object): object } };
    readonly KustoCode: { ParseAndAnalyze(text: string, globals: object): Code };
  };
}
interface Code {
  readonly ResultType: { readonly Columns?: List<Column> } | null;
  GetDiagnostics(): List<Diagnostic>;
}
interface Diagnostic {
  readonly Message: string;
  readonly Start: number;
  readonly Length: number;
}
interface Column {
  readonly Name: string;
  readonly Type: { readonly Name: string };
}
interface List<Item> {
  readonly Count: number;
  getItem(index: number): Item;
}

for (const script of ['bridge.min.js', 'Kusto.Language.Bridge.min.js']) {
  const path = fileURLToPath(import.meta.resolve(`@kusto/language-service-next/${script}`));
  runInThisContext(readFileSync(path, 'utf8'), { filename: path });
}
const { Symbols, GlobalState, KustoCode } = (globalThis as unknown as { readonly Kusto: Kusto }).Kusto.Language;
const workspaceOf = (tables: Readonly<Record<string, string>>) => {
  const symbols = Object.entries(tables).map(
    ([name, columns]) => new Symbols.TableSymbol.$ctor7(name, `(${columns})`, null),
  );
  return GlobalState.Default.WithDatabase(new Symbols.DatabaseSymbol.ctor('workspace', symbols));
};
const workspace = workspaceOf({ ...TABLES, ...OWN_TABLES });
const emptyWorkspace = workspaceOf(OWN_TABLES);

interface Query {
  /** Errors of the parser, with the text they are about. */
  readonly errors: readonly string[];
  /** Types of the result's columns, by column name. */
  readonly columns: ReadonlyMap<string, string>;
}

export function readQuery(text: string): Query {
  return analyze(text, workspace);
}

/** The same for a workspace without telemetry, which has no tables yet. */
export function readQueryBeforeTelemetry(text: string): Query {
  return analyze(text, emptyWorkspace);
}

function analyze(text: string, globals: object): Query {
  const code = KustoCode.ParseAndAnalyze(text, globals);
  const columns = code.ResultType?.Columns;
  return {
    errors: items(code.GetDiagnostics())
      // The parser reports a missing table of a fuzzy union; the service accepts the query.
      .filter(({ Message }) => !/^The fuzzy name /.test(Message))
      .map(({ Message, Start, Length }) => `${text.slice(Start, Start + Length)}: ${Message}`),
    columns: new Map((columns ? items(columns) : []).map(({ Name, Type }) => [Name, Type.Name])),
  };
}

function items<Item>(list: List<Item>): Item[] {
  return Array.from({ length: list.Count }, (_, index) => list.getItem(index));
}
