import manifest from '../package.json' with { type: 'json' };

/** Version of this checkout or image. `CHANGELOG.md` lists the changes per version. */
export const VERSION: string = manifest.version;
