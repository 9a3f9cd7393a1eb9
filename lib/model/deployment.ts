import type { Entity } from '../patterns/entity.ts';
import { departments } from './directory/departments.ts';
import { employees } from './directory/employees.ts';
import { logins } from './directory/logins.ts';

/** What this deployment stores. An entity taken out takes its routes, tables and queues with it. */
export const deployment: readonly Entity[] = [departments, employees, logins] as readonly Entity[];
