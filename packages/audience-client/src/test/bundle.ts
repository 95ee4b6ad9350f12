import { fileURLToPath } from 'node:url';
import { build } from 'rolldown';

/** Bundles the client as one minified module, as a page would load it. */
export async function buildBundle(): Promise<{ code: string; imports: string[] }> {
  const { output } = await build({
    input: fileURLToPath(new URL('../index.ts', import.meta.url)),
    platform: 'browser',
    write: false,
    output: { format: 'esm', minify: true },
  });
  const [chunk, ...rest] = output;
  if (rest.length > 0) throw new Error('the bundle consists of more than one file');
  return { code: chunk.code, imports: [...chunk.imports, ...chunk.dynamicImports] };
}
