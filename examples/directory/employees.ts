import { z } from 'zod';
import {
  type DeclaredEntity,
  defineClaims,
  defineEntity,
  indexEntity,
  interPartitionIndex,
  intraPartitionIndex,
} from '../../lib/define.ts';
import { department, email, employeeId, text } from './fields.ts';

// Entra ID sends xms_edov instead: https://learn.microsoft.com/entra/identity-platform/migrate-off-email-claim-authorization
const verifiedBy = { email_verified: [true], xms_edov: [true, 1, '1', 'true'] } as const;
const claims = defineClaims({ email: { verifiedBy } });

/** Each with the name and the budget code of its department, which the queue copies to all employees after a change. */
export const employees = defineEntity('employees', {
  schema: z.object({
    department,
    employeeId: employeeId.meta({ examples: ['000123', '000901'] }),
    email: email.meta({ examples: ['jonesj@contoso.com', 'ann@contoso.com'] }),
    firstName: text.meta({ examples: ['June', 'Ann'] }),
    lastName: text.meta({ examples: ['Jones', 'Lee'] }),
    phone: z.string().max(40).optional(),
    jobTitle: text.meta({ examples: ['Sales Manager', 'Sales Assistant'] }).optional(),
    hireDate: z.iso
      .date()
      .meta({ examples: ['2010-01-15', '2026-11-20'] })
      .optional(),
    birthDate: z.iso.date().optional(),
    nationalId: z.string().min(1).max(40).optional(),
    vacationHours: z.number().min(0).max(10_000).optional(),
    age: z.int32().min(0).max(150).optional(),
    departmentName: z.string().optional(),
    budgetCode: z.string().optional(),
  }),
  table: 'employees',
  key: { partition: '{department}', row: 'empid_{employeeId}' },
  indexes: {
    email: intraPartitionIndex({ row: 'email_{email}' }),
    hireDate: intraPartitionIndex({ row: 'hired_{hireDate}_{employeeId}' }),
    emailCompanyWide: interPartitionIndex({
      table: 'employeesbyemail',
      partition: 'email_{email#}',
      row: '{email}',
      unique: true,
    }),
    // An employee number opens partitions of other tables (own.through), so no two departments may give the same number.
    id: interPartitionIndex({
      table: 'employeesbyid',
      partition: '{employeeId#}',
      row: '{employeeId}',
      unique: true,
      copies: 'keys',
    }),
    lastName: indexEntity({ row: 'lastname_{lastName}', holds: '{employeeId}' }),
    managers: indexEntity({
      row: 'managers',
      holds: '{employeeId}',
      when: ({ jobTitle }) => /\bmanager\b/i.test(String(jobTitle)),
    }),
    lastNameCompanyWide: indexEntity({
      table: 'employeesbylastname',
      partition: '{lastName}',
      row: 'ids',
      holds: '{department}/{employeeId}',
    }),
  },
  denormalized: {
    department: {
      source: (): DeclaredEntity => departments,
      copies: { departmentName: ({ name }) => name, budgetCode: ({ budgetCode }) => budgetCode },
      fanOut: true,
    },
  },
  encrypted: ['nationalId'],
  attachments: {
    photo: { container: 'photos', maxBytes: 5_000_000, types: ['image/jpeg', 'image/png', 'image/webp'] },
  },
  archive: { table: 'formeremployees' },
  movable: ['department'],
  access: {
    read: ['reader', 'hr'],
    write: ['hr'],
    // The owner's signature opens the whole row, in which only the national id is encrypted.
    restricted: { nationalId: ['hr'], birthDate: ['hr', { role: 'reader', where: { email: claims.email } }] },
    own: { claim: 'email', index: 'emailCompanyWide', verifiedBy },
  },
});

/** In the table and partition of its employees, so that the copies of its manager's name and email are always current. */
export const departments = defineEntity('departments', {
  schema: z.object({
    department: department.meta({ examples: ['Sales', 'Research'] }),
    name: text.optional(),
    budgetCode: z.string().max(40).optional(),
    description: z.string().max(2_000).optional(),
    // A new department has no employee who could be its manager.
    managerId: employeeId.meta({ examples: [] }).optional(),
    managerName: z.string().optional(),
    managerEmail: z.string().optional(),
    employeeCount: z.int32().optional(),
  }),
  table: 'employees',
  key: { partition: '{department}', row: 'department' },
  denormalized: {
    managerId: {
      source: employees,
      copies: {
        managerName: ({ firstName, lastName }) => `${firstName} ${lastName}`,
        managerEmail: ({ email }) => email,
      },
    },
  },
  counts: { employeeCount: employees },
  indexes: {
    // Without the manager's name and the count: an index cannot name fields that change with another entity.
    inOrder: interPartitionIndex({
      table: 'departmentlist',
      partition: 'all',
      row: '{department}',
      copies: ['name', 'budgetCode', 'description', 'managerId'],
    }),
  },
  lookup: { index: 'inOrder' },
  // Clients may cache it, too.
  maxAge: 60,
  access: { read: ['reader', 'hr'], write: ['hr'] },
});
