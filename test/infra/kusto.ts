import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { runInThisContext } from 'node:vm';

/** Reads queries with the parser that Log Analytics has, against the tables that Application Insights fills. */

/** The columns that are asked for: https://learn.microsoft.com/azure/azure-monitor/reference/tables-category. */
const COMMON = 'TimeGenerated: datetime, OperationId: string, OperationName: string, Properties: dynamic, Type: string';
const TABLES = {
  AppRequests: `${COMMON}, Name: string, Url: string, ResultCode: string, Success: bool, DurationMs: real, ItemCount: int`,
  AppDependencies: `${COMMON}, Name: string, ResultCode: string, Success: bool, DurationMs: real, ItemCount: int`,
  AppTraces: `${COMMON}, Message: string, SeverityLevel: int, ItemCount: int`,
  AppExceptions: `${COMMON}, OuterMessage: string, SeverityLevel: int, ItemCount: int`,
  AppMetrics: `${COMMON}, Name: string, Sum: real, Min: real, Max: real, ItemCount: int`,
};

/** What is used of the library, which comes as scripts that define globals. */
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
const tables = Object.entries(TABLES).map(
  ([name, columns]) => new Symbols.TableSymbol.$ctor7(name, `(${columns})`, null),
);
const workspaceOf = (members: readonly object[]) =>
  GlobalState.Default.WithDatabase(new Symbols.DatabaseSymbol.ctor('workspace', members));
const workspace = workspaceOf(tables);
const emptyWorkspace = workspaceOf([]);

export interface Query {
  /** What the parser finds wrong, and where. */
  readonly wrong: readonly string[];
  /** The types of the columns that it answers, by their names. */
  readonly columns: ReadonlyMap<string, string>;
}

export function readQuery(text: string): Query {
  return analyze(text, workspace);
}

/** The same for a workspace that has no telemetry yet, and therefore no tables. */
export function readQueryBeforeTelemetry(text: string): Query {
  return analyze(text, emptyWorkspace);
}

function analyze(text: string, globals: object): Query {
  const code = KustoCode.ParseAndAnalyze(text, globals);
  const columns = code.ResultType?.Columns;
  return {
    wrong: items(code.GetDiagnostics())
      // A missing table of a fuzzy union is a remark of the parser, and no error of the service.
      .filter(({ Message }) => !/^The fuzzy name /.test(Message))
      .map(({ Message, Start, Length }) => `${text.slice(Start, Start + Length)}: ${Message}`),
    columns: new Map((columns ? items(columns) : []).map(({ Name, Type }) => [Name, Type.Name])),
  };
}

function items<Item>(list: List<Item>): Item[] {
  return Array.from({ length: list.Count }, (_, index) => list.getItem(index));
}
