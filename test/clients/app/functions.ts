import { app } from '@azure/functions';
import { createRowkey, fromEnvironment, registerFunctions } from '../../../lib/index.ts';
import { model } from './model.ts';

const rowkey = createRowkey({
  model,
  ...fromEnvironment(process.env),
  operations: {
    async promote({ input: { department, employeeId, jobTitle }, store }) {
      const before = (await store.employees.get({ department, employeeId }))?.values.jobTitle;
      await store.employees.update({ department, employeeId }, { jobTitle });
      return { jobTitle, ...(before === undefined ? {} : { before }) };
    },
  },
});
registerFunctions(app, rowkey, { routePrefix: '' });
