import { declarations, theDeclaration } from './bicep.ts';

/** The tables that every query of an alert begins with. */
const [, tables = ''] = /^'''(.*)'''$/s.exec(theDeclaration('var', 'tables').value) ?? [];

/** The log alerts, with their queries as they are deployed for a model with the prefix `shop`. */
export const alertRules = [
  ...theDeclaration('var', 'rules').value.matchAll(
    /^ {4}name: '(?<name>[\w-]+)'\n {4}title: '(?<title>.*?)'.*?^ {4}severity: (?<severity>\d).*?^ {4}query: '''(?<query>.*?)'''.*?^ {4}threshold: (?<threshold>\w+).*?^ {4}dimensions: (?<dimensions>.*?)^ {2}\}/gms,
  ),
].map(({ groups: { name = '', title = '', severity = '', query = '', threshold = '', dimensions = '' } = {} }) => ({
  name,
  title,
  severity,
  threshold: toNumber(threshold),
  /** Without the tables. */
  body: query,
  query: `let functionPrefix = "shop-";let hasBackup = true;${tables}${query}`,
  dimensions: [...dimensions.matchAll(/ name: '(\w+)'/g)].map(([, dimension = '']) => dimension),
}));

/** Undefined for a parameter. */
function toNumber(threshold: string): number | undefined {
  const variable = declarations.find(({ kind, name }) => kind === 'var' && name === threshold);
  const value = Number(variable?.value ?? threshold);
  return Number.isNaN(value) ? undefined : value;
}
