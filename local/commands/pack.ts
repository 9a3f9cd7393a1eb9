import { Command } from 'commander';
import { run } from '../cli/command.ts';
import { packPackages } from '../package/pack-packages.ts';

const kb = (bytes: number) => `${Math.round(bytes / 1_000).toLocaleString('en')} KB`;

await run(
  new Command().description('Builds what npm publishes, and packs it into dist/packages.').action(async () => {
    for (const { tarball, bytes, unpackedBytes, files } of await packPackages())
      console.log(`${tarball}: ${kb(bytes)}, unpacked ${kb(unpackedBytes)} in ${files} files`);
  }),
);
