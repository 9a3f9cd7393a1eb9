import { readFileSync } from 'node:fs';
import type { Declaration } from './bicep.ts';

/** What Azure says of the types of resources: docs/infrastructure.md. */

export interface Property {
  /** Such as `string`, `CorsRule[]` or `Enabled | Disabled | string`. */
  readonly type: string;
  readonly flags?: string;
  readonly modifiers?: string;
}

export interface ObjectType {
  readonly properties: Readonly<Record<string, Property>>;
  readonly additionalPropertiesType?: string;
}

/** Objects that are told apart by one of their properties. */
export interface OneOf {
  readonly discriminator: string;
  readonly elements: readonly ObjectType[];
}

export interface Schema {
  /** Of the API. */
  readonly version: string;
  readonly types: Readonly<Record<string, ObjectType | OneOf>>;
}

export const generated = read('schemas.json');
/** Of types that the others lack, from https://learn.microsoft.com/azure/templates; most of what is not used is left out. */
export const byHand = read('schemas-by-hand.json');

export function schemaOf(resource: Declaration): Schema | undefined {
  return generated[typeOf(resource)] ?? byHand[typeOf(resource)];
}

export function typeOf({ of }: Declaration): string {
  return of.split('@')[0] ?? '';
}

function read(name: string): Readonly<Record<string, Schema>> {
  return JSON.parse(readFileSync(new URL(name, import.meta.url), 'utf8'));
}
