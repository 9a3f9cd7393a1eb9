import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Command } from 'commander';
import { run } from '../cli/command.ts';
import { createApiReports } from '../package/api-reports.ts';
import { packPackages } from '../package/pack-packages.ts';

const FOLDER = 'docs/reference/api';

await run(
  new Command().description(`Writes what each entry of the packages exports into ${FOLDER}.`).action(async () => {
    const reports = await createApiReports(await packPackages());
    // An entry that is gone leaves no report.
    await rm(FOLDER, { recursive: true, force: true });
    await mkdir(FOLDER, { recursive: true });
    for (const [file, report] of Object.entries(reports)) await writeFile(join(FOLDER, file), report);
    console.log(`${FOLDER}: ${Object.keys(reports).join(', ')}`);
  }),
);
