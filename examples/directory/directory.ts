import { doorevents, doorminutes } from './door-events.ts';
import { departments, employees } from './employees.ts';
import { expenses } from './expenses.ts';
import { logins } from './logins.ts';
import { messagehours, messageyears } from './messages.ts';
import { people } from './people.ts';
import { reviews } from './reviews.ts';

/** The employees of a company and their activities. */
export const directory = [
  departments,
  employees,
  reviews,
  logins,
  expenses,
  doorevents,
  doorminutes,
  messagehours,
  messageyears,
  people,
] as const;
