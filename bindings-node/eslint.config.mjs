import js from '@eslint/js';

const globals = Object.fromEntries(
  ['AbortController', 'AbortSignal', 'Buffer', 'FinalizationRegistry', 'SharedArrayBuffer', 'URL', 'clearInterval', 'clearTimeout',
    'console', 'fetch', 'gc', 'performance', 'process', 'setImmediate', 'setInterval', 'setTimeout'].map((name) => [name, 'readonly']),
);
const node = { ...globals, __dirname: 'readonly', exports: 'writable', module: 'writable', require: 'readonly' };

export default [
  { ignores: ['build/', 'node_modules/'] },
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2023 },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: { eqeqeq: 'error', 'no-var': 'error', 'prefer-const': 'error', 'no-shadow': 'error', 'no-unused-vars': ['error', { argsIgnorePattern: '^_' }] },
  },
  { files: ['**/*.js'], languageOptions: { sourceType: 'commonjs', globals: node } },
  { files: ['**/*.mjs'], languageOptions: { sourceType: 'module', globals } },
];
