import { z } from 'zod';
import { defineEntity } from '../../define/define-entity.ts';
import { indexEntity, interPartitionIndex, intraPartitionIndex } from '../../define/indexes.ts';
import { email, employeeId, text } from './fields.ts';

export const employees = defineEntity('employees', {
  schema: z.object({
    department: text,
    employeeId,
    email,
    firstName: text,
    lastName: text,
    phone: z.string().max(40).optional(),
    jobTitle: text.optional(),
    hireDate: z.iso.date().optional(),
    birthDate: z.iso.date().optional(),
    nationalId: z.string().min(1).max(40).optional(),
    vacationHours: z.number().min(0).max(10_000).optional(),
    age: z.int32().min(0).max(150).optional(),
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
  encrypted: ['nationalId'],
  attachments: {
    photo: { container: 'photos', maxBytes: 5_000_000, types: ['image/jpeg', 'image/png', 'image/webp'] },
  },
  archive: { table: 'formeremployees' },
  movable: ['department'],
  access: {
    read: ['reader', 'hr'],
    write: ['hr'],
    restricted: { nationalId: ['hr'], birthDate: ['hr'] },
    own: {
      claim: 'email',
      index: 'emailCompanyWide',
      // Entra ID sends xms_edov instead: https://learn.microsoft.com/entra/identity-platform/migrate-off-email-claim-authorization
      verifiedBy: { email_verified: [true], xms_edov: [true, 1, '1', 'true'] },
    },
  },
});
