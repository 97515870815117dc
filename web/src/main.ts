import { mount } from "svelte";
import App from "./App.svelte";
import { useToken } from "./wallet/local";
import "./style/tokens.css";
import "./style/base.css";

void useToken().then((refused) => mount(App, { target: document.getElementById("app")!, props: { refused } }));
