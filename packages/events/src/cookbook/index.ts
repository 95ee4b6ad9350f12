import { readdirSync, readFileSync } from 'node:fs';
import { parseRecipe, type Recipe } from './recipe.ts';

export type { Recipe, RecipeParameters } from './recipe.ts';

const FOLDER = new URL('../../cookbook/', import.meta.url);

/**
 * Reads every question of the cookbook, in the order of its files.
 * @throws Error when a part is missing from the comment of a file
 */
export function readRecipes(): Recipe[] {
  const files = readdirSync(FOLDER).filter((name) => name.endsWith('.sql'));
  return files.sort().map((file) => parseRecipe(file, readFileSync(new URL(file, FOLDER), 'utf8')));
}
