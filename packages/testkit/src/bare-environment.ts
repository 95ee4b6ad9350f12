/**
 * What a process that a test starts finds besides its own settings: the programs, and the folder in which Node keeps what
 * it compiled (a third of the work of a start). No address or password of whoever runs the tests gets in.
 */
export function bareEnvironment(): Record<string, string> {
  const { PATH = '', NODE_COMPILE_CACHE } = process.env;
  return { PATH, ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }) };
}
