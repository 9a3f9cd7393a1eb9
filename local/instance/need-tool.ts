/** Tools of development that the package does not install, as a deployed app does without them. */
export type Tool = 'azurite' | 'fast-check' | 'rolldown';

/** Loads a module that imports a tool. Throws a sentence that says how to install the tool if it is missing. */
export async function needTool<Module>(tool: Tool, load: () => Promise<Module>): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    const isMissing = code === 'ERR_MODULE_NOT_FOUND' || code === 'MODULE_NOT_FOUND';
    if (!isMissing || !String(error).includes(tool)) throw error;
    throw new Error(
      `The package ${tool} is not installed, which this command needs: run npm install --save-dev ${tool}.`,
    );
  }
}
