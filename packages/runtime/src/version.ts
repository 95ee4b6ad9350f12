import manifest from '../package.json' with { type: 'json' };

/** Release of this checkout or image; `CHANGELOG.md` lists its changes. */
export const VERSION: string = manifest.version;
