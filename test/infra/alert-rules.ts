import { theDeclaration } from './bicep.ts';

/** The tables that every query of an alert begins with. */
const [, tables = ''] = /^'''(.*)'''$/s.exec(theDeclaration('var', 'tables').value) ?? [];

/** The log alerts, with their queries as they are deployed for a model with the prefix `shop`. */
export const alertRules = [
  ...theDeclaration('var', 'rules').value.matchAll(
    /^ {4}name: '(?<name>[\w-]+)'.*?^ {4}query: '''(?<query>.*?)'''.*?^ {4}dimensions: (?<dimensions>.*?)^ {2}\}/gms,
  ),
].map(({ groups: { name = '', query = '', dimensions = '' } = {} }) => ({
  name,
  /** Without the tables. */
  body: query,
  query: `let functionPrefix = "shop-";${tables}${query}`,
  dimensions: [...dimensions.matchAll(/ name: '(\w+)'/g)].map(([, dimension = '']) => dimension),
}));
