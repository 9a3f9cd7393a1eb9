import type { Command } from 'commander';

/** Returns the text of docs/reference/commands.md: the help of each command. */
export function formatCommands(program: Command): string {
  return `# Commands

What \`npx rowkey COMMAND --help\` says. \`npm run reference\` writes this page.

${program.commands.map((command) => formatCommand(command, 'npx rowkey')).join('\n')}`;
}

function formatCommand(command: Command, parent: string): string {
  const path = `${parent} ${command.name()}`;
  const help = command.createHelp();
  const rows = [
    ...help.visibleArguments(command).map((one) => [`<${one.name()}>`, help.argumentDescription(one)]),
    ...help
      .visibleOptions(command)
      .filter(({ long }) => long !== '--help')
      .map((option) => [option.flags, help.optionDescription(option)]),
  ].map((cells) => `| \`${cells[0]}\` | ${cells[1]?.replaceAll('|', '\\|')} |`);
  const table = rows.length === 0 ? '' : `\n| | |\n|---|---|\n${rows.join('\n')}\n`;
  const usage = `${path} ${command.usage()}`.replace('[options] [command]', 'COMMAND');
  const own = `## ${path.replace('npx rowkey ', '')}\n\n${command.description()}\n\n\`\`\`\n${usage}\n\`\`\`\n${table}`;
  return [own, ...command.commands.map((child) => formatCommand(child, path))].join('\n');
}
