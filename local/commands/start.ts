import { createCommand, run } from '../cli/command.ts';
import { addStartOptions, loadOwnApp, type StartedApp, start } from '../cli/start-command.ts';
import { deployedApp } from '../instance/deployed-app.ts';
import { loadSamples } from '../packs/load-samples.ts';
import { readSamples } from '../packs/samples.ts';

interface Options {
  readonly app?: string;
  readonly build?: true;
  readonly data: string;
  readonly cors: readonly string[];
  readonly empty?: true;
}

const command = addStartOptions(createCommand('Runs the whole product on this machine.'))
  .option('--app <folder>', 'run an app that uses the package; its data is kept in its own .rowkey')
  .option('--empty', 'do not load the sample data')
  .option('--build', 'build this app first')
  .action((options: Options) =>
    start(options, () =>
      options.app === undefined ? loadDeployedApp(options) : loadOwnApp(options.app, options.data),
    ),
  );

async function loadDeployedApp({ data, empty, build }: Options): Promise<StartedApp> {
  // The bundler takes a moment to load, which no other start needs.
  if (build) await (await import('./build.ts')).build();
  const started = { app: deployedApp, data, isSource: false };
  return empty ? started : { ...started, loadSamples, samples: (await readSamples(Date.now())).flat() };
}

await run(command);
