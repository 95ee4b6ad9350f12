import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

/** The client as a page would load it: one minified module. */
export async function buildBundle(): Promise<{ code: string; imports: string[] }> {
  const { output } = await build({
    input: fileURLToPath(new URL('../index.ts', import.meta.url)),
    platform: 'browser',
    write: false,
    output: { format: 'esm', minify: true },
  });
  const [chunk, ...others] = output;
  if (others.length > 0) throw new Error('the bundle is more than one file');
  return { code: chunk.code, imports: [...chunk.imports, ...chunk.dynamicImports] };
}
