import svelte from "eslint-plugin-svelte";
import tseslint from "typescript-eslint";

// What must never happen on a page that handles money and strangers' text. Each rule names the reason.
const NEVER = [
  { selector: "Identifier[name=/^(innerHTML|outerHTML|insertAdjacentHTML|createContextualFragment)$/]", message: "A stranger's text must stay text." },
  { selector: "Literal[value=/^(eth_sign|personal_sign)$/]", message: "The pages sign typed data and transactions only." },
  { selector: "Identifier[name=/(private_?key|mnemonic|seed_?phrase|secret_?key)/i]", message: "Keys never reach the page." },
  { selector: "Identifier[name=/^(MaxUint256|maxUint256)$/]", message: "Approvals are exact." },
  { selector: "CallExpression[callee.name='Number'][arguments.0.name=/wei$/i]", message: "Amounts of wei stay BigInt." },
  { selector: "CallExpression[callee.name='Number'][arguments.0.property.name=/wei$/i]", message: "Amounts of wei stay BigInt." },
];

export default tseslint.config(
  { ignores: ["node_modules", "src/generated"] },
  ...tseslint.configs.recommended,
  ...svelte.configs.recommended,
  { files: ["**/*.svelte", "**/*.svelte.ts"], languageOptions: { parserOptions: { parser: tseslint.parser } } },
  {
    rules: {
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      "no-undef": "off",
      "no-restricted-syntax": ["error", ...NEVER],
      "svelte/no-at-html-tags": "error",
      "svelte/no-inline-styles": ["error", { allowTransitions: false }],
      "svelte/no-navigation-without-resolve": "off",
      "max-lines": ["error", 300],
    },
  },
);
